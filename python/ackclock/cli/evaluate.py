"""`ackclock evaluate`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackclock.cli import completion, options
from ackclock.cli.command import FILE, FOLDER, Command
from ackclock.errors import InputError, first_line
from ackclock.system import signals

if TYPE_CHECKING:
    from ackclock.cli.run_jobs import Options
    from ackclock.evaluate.cases import Case
    from ackclock.evaluate.run import Request

#: The key of the algorithm in the scenario that checks it.
PLACE = "flows[0].congestion"

#: Exit status if a required section has a verdict "more harmful".
FAILED = 1

#: Longest part of a folder's name that the candidate gives.
MAX_NAME = 40


@click.command(cls=Command)
@options.algorithm(
    completion.congestion,
    "The congestion control algorithm: its name, or a table such as '{ kind = \"aimd\", beta = 0.9 }'.",
)
@options.engine_list("Engines that run all scenarios, such as packet,linux; the dossier has their agreement.")
@options.kernel
@options.ssh_config
@options.module
@options.settings
@click.option("--seed", metavar="N", type=int, help="The first seed; others follow it (default: 1).")
@options.out("Folder of the dossier and its runs (default: results/evaluate-NAME).")
@click.option("--section", metavar="N", help="Only this section of RFC 9743 and those in it, such as 5.2.")
@click.option("--quick", is_flag=True, help="The short evaluation: a selection of the scenarios, at most 8 seeds.")
@click.option(
    "--baseline",
    metavar="NAME",
    default="cubic",
    shell_complete=completion.one_of(completion.congestion),
    help="The algorithm that is the yardstick, next to Reno.",
)
@click.option(
    "--scenarios",
    metavar="FOLDER",
    type=FOLDER,
    multiple=True,
    help="More scenarios with a table [evaluate]; repeatable.",
)
@click.option(
    "--require",
    metavar="N",
    multiple=True,
    help='Exit with status 1 if a verdict in this section, or in any (all), is "more harmful" or there is none; '
    "repeatable.",
)
@click.option(
    "--against", metavar="FILE", type=FILE, help="The dossier.json of an earlier evaluation: print what changed."
)
@options.restart
@options.json_flag("Print the dossier as JSON only.")
@options.dry_run_flag("List the scenarios and the number of runs; write nothing.")
@options.parallel
@options.collected
def evaluate(  # noqa: PLR0913 (each is an option of the command line)
    chosen: Options,
    *,
    name: str,
    section: str | None,
    baseline: str,
    scenarios: Sequence[Path],
    require: Sequence[str],
    against: Path | None,
    restart: bool,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Evaluate a congestion control algorithm by the criteria of RFC 9743: is it more harmful than CUBIC and Reno?

    Every scenario runs with the algorithm, with the baseline and with Reno in its place, with the same seeds. A verdict
    rests on the interval of the paired differences of harm (Ware et al., HotNets 2019); undecided ones get more seeds.
    After an interruption the same command resumes.

    Exit status: 0 done, 1 a required section has a verdict "more harmful" or none, otherwise as for all commands.

    Examples:
        ackclock evaluate bbr --quick
        ackclock evaluate cubic --section 5.2 --out results/cubic
        ackclock evaluate mine --engine linux --module mine.c --require all
        ackclock evaluate bbr3 --against results/evaluate-bbr/dossier.json
    """
    from ackclock.cli import run_jobs
    from ackclock.cli.terminal import evaluation as terminal
    from ackclock.cli.terminal.output import progress
    from ackclock.evaluate import cases, dossier, page, run, verdicts

    _check_sections(require)
    request = _request(chosen, name, baseline, restart)
    found = cases.read(
        [cases.FOLDER, *scenarios],
        lambda path: run_jobs.load_scenario(path, chosen),
        section=section,
        quick=chosen.quick,
    )
    folder = chosen.out or Path("results") / f"evaluate-{_safe(request.name)}"
    _check_algorithms(request)
    earlier = None if against is None else dossier.read_findings(against)
    _check_judged(require, found, request)
    if dry_run:
        terminal.print_cases(found, request)
        return
    dossier.check_folder(folder, restart=restart)
    first = found[0].variants([request.candidate]).point(0).plan
    if chosen.module:
        run_jobs.check_module([(first, name) for name in request.engines], chosen.module)
    with (
        signals.exit_message(f"interrupted; finished runs are kept in {folder}: the same command resumes"),
        run_jobs.module_loaded(first, *request.engines),
        progress(f"{folder.name}: {len(found)} scenarios") as report_progress,
    ):
        done = run.evaluate(found, request, folder, report_progress)
    changes = None if earlier is None else verdicts.changes(earlier, done.findings)
    written = dossier.write(done, folder, changes, page.render(done, changes))
    if as_json:
        click.echo(json.dumps(dossier.as_dict(done, changes), allow_nan=False))
    else:
        terminal.print_evaluation(done, changes)
    for path in written:
        click.echo(f"wrote {path}", err=as_json)
    failing, unjudged = done.failing(require), done.unjudged(require)
    terminal.print_failing(failing, unjudged, done.request)
    if failing or unjudged:
        raise click.exceptions.Exit(FAILED)


def _request(chosen: Options, name: str, baseline: str, restart: bool) -> Request:
    """Return what is evaluated. Raises `InputError` for engines and numbers that cannot be."""
    from ackclock import engines
    from ackclock.cli import run_jobs
    from ackclock.evaluate import run
    from ackclock.input import cli_values
    from ackclock.input.fields import nearest, shown

    sizes = run.QUICK_SIZES if chosen.quick else run.SAMPLE_SIZES
    run_jobs.check_number("--seed", chosen.seed, 0, 2**63 - sizes[-1])
    run_jobs.check_number("--jobs", chosen.jobs, 1, 10_000)
    candidate: Any = cli_values.value(name)
    kind = candidate.get("kind") if isinstance(candidate, dict) else candidate
    if not isinstance(kind, str):
        raise InputError(
            f"NAME: found {shown(candidate)}; expected a congestion control algorithm, or a table with kind"
        )
    names = run_jobs.engine_names(chosen.engine)
    for engine in names:
        if engine not in engines.ENGINES:
            raise InputError(f"--engine: found {shown(engine)}; expected {nearest(engine, engines.ENGINES)}")
    return run.Request(
        candidate,
        baseline,
        tuple(names),
        sizes,
        1 if chosen.seed is None else chosen.seed,
        chosen.jobs,
        chosen.target,
        restart,
        chosen.command,
    )


def _check_algorithms(request: Request) -> None:
    """Raise `InputError` for an unknown algorithm or parameter, after the user's module has been read."""
    from ackclock.errors import ScenarioError
    from ackclock.scenario import planning

    for option, congestion in (("NAME", request.candidate), ("--baseline", request.baseline)):
        queue = {"discipline": "pfifo", "limit": "1bdp"}
        network = {"topology": "dumbbell", "rate": "10Mbit", "rtt": "40ms", "queue": queue}
        content = {"duration": "1s", "network": network, "flows": [{"congestion": congestion}]}
        try:
            planning.mapped(content, option).plan()
        except ScenarioError as error:
            problems = [replace(each, key=each.key.removeprefix(PLACE).removeprefix(".")) for each in error.problems]
            raise ScenarioError(problems) from None
        except TypeError as error:
            raise InputError(f"{option}: {first_line(error)}") from None


def _check_judged(require: Sequence[str], cases: Sequence[Case], request: Request) -> None:
    """Raise `InputError` for a required section that the engines have no scenario of, and as `run.check` does."""
    from ackclock.evaluate import run
    from ackclock.input.fields import nearest, shown

    unsupported = run.check(cases, request)
    pairs = [(engine, case) for engine in request.engines for case in cases]
    sections = dict.fromkeys(c.judged.section for engine, c in pairs if (engine, c.name) not in unsupported)
    for name in run.without(require, sections):
        found = f"{shown(name)}, of which no scenario is selected that {' or '.join(request.engines)} can run"
        raise InputError(f"--require: found {found}; expected {nearest(name, sections)}")


def _check_sections(require: Sequence[str]) -> None:
    from ackclock.evaluate import SECTIONS, in_section
    from ackclock.input.fields import nearest, shown

    for name in require:
        if name != "all" and not any(in_section(section, name) for section in SECTIONS):
            raise InputError(f"--require: found {shown(name)}; expected all, or {nearest(name, list(SECTIONS))}")


def _safe(name: str) -> str:
    """Return a candidate's name as a part of a folder's name."""
    return "-".join("".join(letter if letter.isalnum() or letter in ".-_" else " " for letter in name).split())[
        :MAX_NAME
    ]
