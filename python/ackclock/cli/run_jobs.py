"""Jobs of `ackclock run`: scenarios × engines, each into a folder. All errors are raised before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackclock import engines, stacks
from ackclock.errors import AckclockError, InputError, Problem, ScenarioError, UnsupportedError
from ackclock.experiments import user_control
from ackclock.input import cli_values
from ackclock.input.fields import shown
from ackclock.input.source import named
from ackclock.plan import Plan
from ackclock.scenario import planning
from ackclock.scenario.overrides import settings
from ackclock.system.files import readable

if TYPE_CHECKING:
    from ackclock.dataset import Dataset
    from ackclock.experiments.cluster import Target
    from ackclock.experiments.pilot import Forecast

#: Runs of one scenario in one call.
MAX_REPEATS = 10_000

#: Threads of one run.
MAX_THREADS = 1024

#: The engine that has kernels, and the one that has users' stacks.
LINUX = "linux"
PACKET = "packet"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of commands that run scenarios, as they were typed."""

    engine: str = "packet"
    kernel: str | None = None
    ssh_config: Path | None = None
    seed: int | None = None
    repeats: int | None = None
    out: Path | None = None
    jobs: int | None = None
    threads: int = 1
    report: bool = True
    quick: bool = False
    command: str = ""
    module: Path | None = None
    stacks: tuple[str, ...] = ()
    perturb: bool = False
    settings: tuple[str, ...] = ()
    scheduler: str | None = None
    cluster: str | None = None

    @property
    def target(self) -> Target | None:
        """Return the cluster that makes the runs; None for processes of this machine. Raises `InputError`."""
        return cluster_target(self.scheduler, self.cluster, self.jobs)


@dataclass(frozen=True, slots=True)
class Job:
    """One scenario with one engine into one folder."""

    plan: Plan
    engine: str
    folder: Path
    options: Options

    @property
    def title(self) -> str:
        """The progress bar's title."""
        return f"{self.folder.name}: {len(self.plan.seeds)} × {self.plan.duration_s:g} s"

    def warnings(self, rows: Sequence[Mapping[str, Any]], data: Dataset) -> list[str]:
        """Return why the result may mislead, in sentences: by its runs and their metrics (`rows`)."""
        from ackclock.experiments import guards

        setting = guards.Setting("", self.plan, self.engine, rows, data)
        return guards.warnings([setting], perturbed=self.options.perturb)

    def run(self, progress: Callable[[float], None]) -> Dataset:
        """Run the plan and write the folder, completely or not at all; return the dataset."""
        from ackclock.dataset import folders
        from ackclock.dataset.manifests import CAPTURES
        from ackclock.experiments import phase_effects, runner

        report_errors: list[AckclockError] = []
        with folders.staging_folder(self.folder) as private, module_loaded(self.plan, self.engine):
            captures = private / CAPTURES if self.plan.has_captures else None
            passes = 2 if self.options.perturb else 1
            data = runner.run(
                self.plan,
                self.engine,
                jobs=self.options.jobs,
                threads=self.options.threads,
                progress=lambda share: progress(share / passes),
                captures=captures,
                command=self.options.command,
            )
            if self.options.perturb:
                data = phase_effects.checked(
                    data,
                    self.plan,
                    self.engine,
                    jobs=self.options.jobs,
                    progress=lambda share: progress((1 + share) / passes),
                )
            data.write(self.folder, captures, lambda new: report_errors.extend(self.write_report(data, new)))
        for error in report_errors:
            raise error
        return data

    def outputs(self) -> Iterator[Path]:
        """Yield the paths that were written and that a user may want to open."""
        from ackclock.dataset.manifests import CAPTURES, REPORT

        yield self.folder
        if self.options.report:
            yield self.folder / REPORT
        if self.plan.has_captures:
            yield self.folder / CAPTURES

    def write_report(self, data: Dataset, folder: Path) -> Iterator[AckclockError]:
        """Write the report; yield an error instead of raising it, so that the result is kept."""
        if not self.options.report:
            return
        from ackclock.dataset import folders
        from ackclock.dataset.manifests import REPORT
        from ackclock.figures.report import render, write_page

        try:
            write_page(render([data], [self.folder.name]), folder / REPORT)
        except folders.WriteError as error:
            yield folders.WriteError(self.folder / REPORT, error.reason)
        except AckclockError as error:
            yield error


def plans(scenarios: Sequence[Path], options: Options) -> list[Plan]:
    """Return the plan of each scenario. Raises `InputError`, and `ScenarioError` with all mistakes of all files."""
    from ackclock.experiments import runner

    given_seeds = seeds(options)
    made: list[Plan] = []
    problems: list[Problem] = []
    for path in scenarios:
        try:
            plan = load_scenario(path, options).plan()
        except ScenarioError as error:
            problems += error.problems
            continue
        plan = plan if given_seeds is None else replace(plan, seeds=given_seeds)
        made.append(runner.quick(plan) if options.quick else plan)
    if problems:
        raise ScenarioError(problems)
    return made


def load_scenario(scenario: Path, options: Options) -> planning.Loaded:
    """Load a scenario file with the options' values. Raises as `apply_options`."""
    return apply_options(lambda: planning.load(scenario), options)


def apply_options(load: Callable[[], planning.Loaded], options: Options) -> planning.Loaded:
    """Load a scenario with the options' settings, kernel, ssh configuration, module and stacks.

    Raises `InputError` if no engine takes them.
    """
    kernel, config, module = options.kernel, options.ssh_config, options.module
    needed = user_control.engine(module) if module else LINUX
    for option, given, engine in (
        ("kernel", kernel, LINUX),
        ("ssh-config", config, LINUX),
        ("module", module, needed),
    ):
        if given is not None and (not str(given) or engine not in engine_names(options.engine)):
            raise InputError(
                f"--{option}: found {shown(str(given))} with --engine {options.engine}; expected --engine {engine}"
            )
    check_ssh_config(config)
    module_option = user_control.bring(module) if module else None
    registered = [stacks.register(given) for given in options.stacks]
    if registered and PACKET not in engine_names(options.engine):
        raise InputError(f"--stack: found it with --engine {options.engine}; expected --engine {PACKET}")
    checked = load().with_(settings(options.settings), "--set").on(kernel, str(config.absolute()) if config else None)
    return replace(checked, module=module_option, stacks=registered)


def check_ssh_config(path: Path | None) -> None:
    """Raise `InputError` if there is no such file."""
    if path is not None and not path.is_file():
        raise InputError(f"--ssh-config: found no file {readable(path)}; expected an ssh configuration")


def supported_engines(planned: Sequence[Plan], options: Options) -> list[str]:
    """Return the engines' names. Raises `InputError` for unknown ones, `UnsupportedError`."""
    names = engine_names(options.engine)
    chosen = [engines.engine(name) for name in names]
    if reasons := [reason for plan in planned for engine in chosen for reason in engines.unsupported(engine, plan)]:
        raise UnsupportedError(dict.fromkeys(reasons))
    return names


def preflight(planned: Sequence[Plan], names: Sequence[str]) -> None:
    """Examine the hosts that runs would need; print a line on each to standard error. Raises `InputError`."""
    missing: list[str] = []
    for plan in planned:
        for name in names:
            report = engines.engine(name).preflight(plan)
            if report is not None:
                for line in [*(f'host "{host}": {line}' for host, line in report.hosts.items()), *report.warnings]:
                    click.echo(line, err=True)
                missing += report.missing
    if missing:
        raise InputError("\n".join(dict.fromkeys(missing)))


def report_threads(planned: Sequence[Plan], names: Sequence[str], options: Options) -> None:
    """Print to standard error how many threads a run uses, and why only one, if the options allow several."""
    if options.threads == 1:
        return
    for plan in planned:
        for name in names:
            used, reason = engines.engine(name).threads(plan, options.threads)
            why = f": {reason}" if reason else ""
            click.echo(f"{plan.name}, {name}: {used} thread{'s' if used > 1 else ''} for each run{why}", err=True)


def prepare(scenarios: Sequence[Path], planned: Sequence[Plan], options: Options) -> list[Job]:
    """Return the jobs, checked. Raises `InputError` for engines and folders, `UnsupportedError`."""
    names = supported_engines(planned, options)
    several, suffix = len(planned) * len(names) > 1, settings_suffix(options.settings)
    pairs = [(path, plan, name) for path, plan in zip(scenarios, planned, strict=True) for name in names]
    made = [
        Job(plan, name, result_folder(path, name, options.out, several=several, suffix=suffix), options)
        for path, plan, name in pairs
    ]
    _check_folders([job.folder for job in made])
    for number, job in enumerate(made):  # a job may need the result of an earlier one
        engines.check_inputs(engines.engine(job.engine), job.plan, [other.folder for other in made[:number]])
    if options.module:
        check_module([(job.plan, job.engine) for job in made], options.module)
    if options.perturb:
        from ackclock.experiments import phase_effects

        for job in made:
            phase_effects.check(job.plan, job.engine)
    return made


def module_loaded(plan: Plan, *names: str) -> AbstractContextManager[None]:
    """Return a block in which the live kernel has the plan's module, if the engine linux is among the names."""
    if LINUX not in names:
        return nullcontext()
    from ackclock.engines.linux.kernel import user_module

    return user_module.loaded(plan)


def check_module(planned: Iterable[tuple[Plan, str]], file: Path) -> None:
    """Check that some flow of the plans of the file's engine uses the user's module; compile one for a kernel.

    Raises `InputError`.
    """
    engine = user_control.engine(file)
    plans = [plan for plan, name in planned if name == engine]
    if engine == LINUX:
        _check_kernel_module(plans, file)
    name = next((plan.options[engine]["module"]["name"] for plan in plans), file.stem)
    groups = [group.congestion.kind for plan in plans for group in plan.groups if group.congestion]
    if name not in (*groups, *(flow.congestion for plan in plans for flow in plan.datagrams)):
        raise InputError(f"--module: {readable(file)}: found no flows with congestion = {shown(name)}; expected some")


def _check_kernel_module(plans: Sequence[Plan], file: Path) -> None:
    from ackclock.engines import linux
    from ackclock.engines.linux.kernel import user_module

    for plan in plans:
        linux.ready(plan)
    module = user_module.read(file)
    if module.is_bpf and len({tuple(sorted(user_module.values(plan, module).items())) for plan in plans}) > 1:
        raise InputError(
            f"--module: {readable(file)}: found points that give it different parameters; expected one set"
        )


def check_number(option: str, number: int | None, low: int, high: int) -> None:
    """Raise `InputError` if an option's number is outside its range."""
    if number is not None and not low <= number <= high:
        raise InputError(f"{option}: found {number}; expected a whole number from {low} to {high}")


def seeds(options: Options) -> tuple[int, ...] | None:
    """Return the options' seeds; None for the scenario's own. Raises `InputError` for impossible numbers."""
    for other, is_given in (("seed", options.seed is not None), ("quick", options.quick)):
        if is_given and options.repeats is not None:
            raise InputError(f"--{other}: found both --{other} and --repeats; expected one of them")
    check_number("--seed", options.seed, 0, 2**63 - 1)
    check_number("--repeats", options.repeats, 1, MAX_REPEATS)
    check_number("--jobs", options.jobs, 1, 10_000)
    check_number("--threads", options.threads, 1, MAX_THREADS)
    if options.seed is not None:
        return (options.seed,)
    return tuple(range(1, options.repeats + 1)) if options.repeats is not None else None


def cluster_target(scheduler: str | None, cluster: str | None, jobs: int | None) -> Target | None:
    """Return the cluster that the options name; None for processes of this machine. Raises `InputError`."""
    from ackclock.experiments import cluster as clusters

    target = clusters.target(scheduler, cluster)
    if target is not None and jobs is not None:
        raise InputError(f"{target.option}: found --jobs as well; expected one of them")
    return target


def warn_shortage(expected: Forecast, folder: Path | None) -> None:
    """Print a warning if results will need more room than the disk of the folder has."""
    if warning := expected.shortage(folder or Path("results")):
        click.echo(f"warning: {warning}", err=True)


def engine_names(given: str) -> list[str]:
    """Return the names of `--engine`, without duplicates."""
    return list(dict.fromkeys(cli_values.items(given)))


def result_folder(scenario: Path, engine: str, out: Path | None, *, several: bool, suffix: str = "") -> Path:
    """Return the folder of a result: `out`, or one in it if there are several results, or one in `results`.

    The `suffix` keeps the results of different commands apart.
    """
    if out is not None and not several:
        return out
    return (out or Path("results")) / f"{Path(named(scenario)).stem}-{engine}{suffix}"


def settings_suffix(settings: Sequence[str]) -> str:
    """Return a suffix for what `--set` changed, such as `-limit-5211e7`: other values do not replace the result."""
    if not settings:
        return ""
    from ackclock.dataset import folders

    keys = [re.sub(r"\W", "", text.partition("=")[0].rpartition(".")[2]) for text in settings]
    return f"-{folders.key_suffix(keys, settings)}"


def _check_folders(folders: Sequence[Path]) -> None:
    if duplicates := {folder for folder in folders if folders.count(folder) > 1}:
        raise InputError(
            f"{duplicates.pop()}: found two results for this folder; expected scenarios with different names"
        )
    from ackclock.dataset.folders import check
    from ackclock.dataset.result_kind import Kind

    for folder in folders:
        check(folder, Kind.RUN)
