"""What one call of `ackclock run` has to do: scenarios × engines, each into a folder.

Everything that can be refused is refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ackclock import engines
from ackclock.errors import AckclockError, InputError, Problem, ScenarioError, UnsupportedError
from ackclock.input.fields import shown
from ackclock.input.source import named
from ackclock.plan import Plan
from ackclock.scenario import planning
from ackclock.scenario.overrides import settings
from ackclock.system.files import readable

if TYPE_CHECKING:
    from ackclock.dataset import Dataset
    from ackclock.experiments.cluster.target import Place

#: Most runs of one scenario in one call.
MOST_REPEATS = 10_000

#: The engine that has kernels.
LINUX = "linux"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `ackclock run` that decide what is done."""

    engines: str = "packet"
    kernel: str | None = None
    ssh_config: Path | None = None
    seed: int | None = None
    repeats: int | None = None
    out: Path | None = None
    jobs: int | None = None
    report: bool = True
    quick: bool = False
    command: str = ""
    module: Path | None = None
    check_phase: bool = False
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """One scenario with one engine into one folder."""

    plan: Plan
    engine: str
    folder: Path
    options: Options

    @property
    def title(self) -> str:
        """What the progress bar says."""
        return f"{self.folder.name}: {len(self.plan.seeds)} × {self.plan.duration_s:g} s"

    def doubts(self) -> Iterator[str]:
        """What is known to make such a plan's result doubtful, and is not looked into: a line each."""
        from ackclock.experiments import model_validity, phase_effects, token_bucket_check

        if self.engine in token_bucket_check.ENGINES and (why := token_bucket_check.doubt(self.plan)):
            yield f"{self.plan.name}: {why}"
        if self.engine in model_validity.ENGINES and (why := model_validity.doubt(self.plan, self.engine)):
            yield f"{self.plan.name}: {why}"
        if (
            self.engine in phase_effects.ENGINES
            and not self.options.check_phase
            and (why := phase_effects.prone(self.plan))
        ):
            yield f"{self.plan.name}: {why}"

    def run(self, progress: Callable[[float], None]) -> Dataset:
        """Runs the plan and writes the folder, whole or not at all; returns what was written."""
        from ackclock.dataset import folders
        from ackclock.dataset.manifests import CAPTURES
        from ackclock.experiments import runner

        unreported: list[AckclockError] = []
        with folders.staging_folder(self.folder) as private, brought_in(self.plan, self.engine):
            captures = private / CAPTURES if self.plan.record.pcap else None
            both = 2 if self.options.check_phase else 1
            data = runner.run(
                self.plan,
                self.engine,
                jobs=self.options.jobs,
                progress=lambda share: progress(share / both),
                captures=captures,
                command=self.options.command,
            )
            if self.options.check_phase:
                data = self._beside_its_twin(data, lambda share: progress((1 + share) / both))
            data.write(self.folder, captures, lambda new: unreported.extend(self._report(data, new)))
        for error in unreported:
            raise error
        return data

    def _beside_its_twin(self, data: Dataset, progress: Callable[[float], None]) -> Dataset:
        from ackclock.experiments import phase_effects

        return phase_effects.checked(data, self.plan, self.engine, jobs=self.options.jobs, progress=progress)

    def written(self) -> Iterator[Path]:
        """The paths that a user may want to open."""
        from ackclock.dataset.manifests import CAPTURES, REPORT

        yield self.folder
        if self.options.report:
            yield self.folder / REPORT
        if self.plan.record.pcap:
            yield self.folder / CAPTURES

    def _report(self, data: Dataset, folder: Path) -> Iterator[AckclockError]:
        """Writes the report; why it could not, which is no reason to lose the result."""
        if not self.options.report:
            return
        from ackclock.dataset import folders
        from ackclock.dataset.manifests import REPORT
        from ackclock.figures.report import page, render

        try:
            page.write(render([data], [self.folder.name]), folder / REPORT)
        except folders.WriteError as error:
            yield folders.WriteError(self.folder / REPORT, error.reason)
        except AckclockError as error:
            yield error


def plans(scenarios: Sequence[Path], options: Options) -> list[Plan]:
    """The plan of each scenario. Raises `InputError`, and `ScenarioError` with all mistakes of all files."""
    asked = seeds(options)
    made: list[Plan] = []
    problems: list[Problem] = []
    for path in scenarios:
        try:
            plan = loaded(path, options).plan()
            made.append(shortened(plan if asked is None else replace(plan, seeds=asked), options))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)
    return made


def loaded(scenario: Path, options: Options) -> planning.Loaded:
    """A scenario's file with what the options name. Raises as `equipped`."""
    return equipped(lambda: planning.load(scenario), options)


def equipped(load: Callable[[], planning.Loaded], options: Options) -> planning.Loaded:
    """A scenario with the kernel, the ssh and the module that the options name, which it may name itself.

    Raises `InputError` if no engine takes them.
    """
    kernel, config, module = options.kernel, options.ssh_config, options.module
    named = (("--kernel", kernel), ("--ssh-config", config and str(config)), ("--module", module and str(module)))
    for option, given in named:
        if given is not None and (not given or LINUX not in engine_names(options.engines)):
            raise InputError(
                f"{option}: found {shown(given)} with --engine {options.engines}; expected --engine {LINUX}"
            )
    if config is not None and not config.is_file():
        raise InputError(f"--ssh-config: found no file {readable(config)}; expected a configuration of ssh's")
    module_option = _module_option(module) if module else None
    checked = load().with_(settings(options.values), "--set").on(kernel, str(config.absolute()) if config else None)
    return replace(checked, module=module_option)


def _module_option(path: Path) -> dict[str, str]:
    """What a file brings for the kernel; from here on scenarios may name it."""
    from ackclock.engines.linux.kernel import user_module

    module = user_module.read(path)
    user_module.bring(module)
    return user_module.option(module)


def able(planned: Sequence[Plan], options: Options) -> list[str]:
    """The names of the engines. Raises `InputError` for unknown ones, `UnsupportedError` for what one cannot model."""
    names = engine_names(options.engines)
    chosen = [engines.engine(name) for name in names]
    if reasons := [reason for plan in planned for engine in chosen for reason in engines.refusals(engine, plan)]:
        raise UnsupportedError(dict.fromkeys(reasons))
    return names


def look(planned: Sequence[Plan], names: Sequence[str], say: Callable[[str], None]) -> None:
    """Looks at the machines that runs would need, and says a line on each. Raises `InputError` for what is missing."""
    missing: list[str] = []
    for plan in planned:
        for name in names:
            found = engines.look(engines.engine(name), plan)
            if found is not None:
                for line in [*(f'host "{host}": {line}' for host, line in found[0].items()), *found[2]]:
                    say(line)
                missing += found[1]
    if missing:
        raise InputError("\n".join(dict.fromkeys(missing)))


def prepare(scenarios: Sequence[Path], planned: Sequence[Plan], options: Options) -> list[Job]:
    """The jobs, checked. Raises `InputError` for engines and folders, `UnsupportedError`."""
    names = able(planned, options)
    several = len(planned) * len(names) > 1
    pairs = [(path, plan, name) for path, plan in zip(scenarios, planned, strict=True) for name in names]
    made = [Job(plan, name, folder(path, name, options.out, several=several), options) for path, plan, name in pairs]
    _check_folders([job.folder for job in made])
    _check_needs(made)
    if options.module:
        check_module([job.plan for job in made if job.engine == LINUX], options.module)
    if options.check_phase:
        from ackclock.experiments import phase_effects

        for job in made:
            phase_effects.check(job.plan, job.engine)
    return made


def brought_in(plan: Plan, *names: str) -> AbstractContextManager[None]:
    """A block in which what the plan brings is in the live kernel, if the engine that has kernels is among these."""
    if LINUX not in names:
        return nullcontext()
    from ackclock.engines.linux.kernel import user_module

    return user_module.there(plan)


def check_module(plans: Sequence[Plan], file: Path) -> None:
    """What is brought for the kernel is compiled, and some flow of these plans has it. Raises `InputError`."""
    from ackclock.engines import linux
    from ackclock.engines.linux.kernel import user_module

    for plan in plans:
        linux.ready(plan)
    module = user_module.read(file)
    name = module.name
    told = {tuple(sorted(user_module.values(plan, module).items())) for plan in plans} if module.is_bpf else set()
    if len(told) > 1:
        raise InputError(
            f"--module: {readable(file)}: found points that give it different parameters; expected one set"
        )
    if not any(group.congestion and group.congestion.kind == name for plan in plans for group in plan.groups):
        raise InputError(f"--module: {readable(file)}: found no flows with congestion = {shown(name)}; expected some")


def _check_needs(made: Sequence[Job]) -> None:
    """Results that a job needs must be there, or come of a job before."""
    for number, job in enumerate(made):
        engines.check_needs(engines.engine(job.engine), job.plan, [other.folder for other in made[:number]])


def _check_numbers(options: Options) -> None:
    if options.seed is not None and options.repeats is not None:
        raise InputError("--seed: found both --seed and --repeats; expected one of them")
    if options.quick and options.repeats is not None:
        raise InputError("--quick: found both --quick and --repeats; expected one of them")
    check_number("--seed", options.seed, 0, 2**63 - 1)
    check_number("--repeats", options.repeats, 1, MOST_REPEATS)
    check_number("--jobs", options.jobs, 1, 10_000)


def check_number(option: str, found: int | None, low: int, high: int) -> None:
    """Refuses an option's number outside its range."""
    if found is not None and not low <= found <= high:
        raise InputError(f"{option}: found {found}; expected a whole number from {low} to {high}")


def seeds(options: Options) -> tuple[int, ...] | None:
    """The seeds that the options ask for; None for the scenario's own. Raises `InputError` for impossible numbers."""
    _check_numbers(options)
    if options.seed is not None:
        return (options.seed,)
    return tuple(range(1, options.repeats + 1)) if options.repeats is not None else None


def place(scheduler: str | None, cluster: str | None, jobs: int | None) -> Place | None:
    """The cluster that the options name; None for this machine's processes. Raises `InputError`."""
    from ackclock.experiments.cluster import target as places

    found = places.place(scheduler, cluster)
    if found is not None and jobs is not None:
        raise InputError(f"{found.option}: found --jobs beside it; expected one of them")
    return found


def engine_names(given: str) -> list[str]:
    """What `--engine` names, each once."""
    from ackclock.input import cli_values

    return list(dict.fromkeys(cli_values.items(given)))


def shortened(plan: Plan, options: Options) -> Plan:
    """The plan, or only a look at it."""
    from ackclock.experiments import runner

    return runner.quick(plan) if options.quick else plan


def folder(scenario: Path, engine: str, out: Path | None, *, several: bool, what: str = "") -> Path:
    """Where a result goes: `out`, or a folder in it if there are several results, or one of `results`.

    `what` is the end of the folder's name: results of different commands have different folders.
    """
    if out is not None and not several:
        return out
    return (out or Path("results")) / f"{Path(named(scenario)).stem}-{engine}{what}"


def _check_folders(folders: Sequence[Path]) -> None:
    if twice := {place for place in folders if folders.count(place) > 1}:
        raise InputError(f"{twice.pop()}: found two results for this folder; expected scenarios with different names")
    from ackclock.dataset.folders import check
    from ackclock.dataset.result_kind import Kind

    for place in folders:
        check(place, Kind.RUN)
