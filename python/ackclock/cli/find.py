"""`ackclock find`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import typer

from ackclock.cli.options import CheckPhase, Cluster, Jobs, Kernel, Module, Scheduler, command
from ackclock.completion import words as completing
from ackclock.errors import InputError
from ackclock.system import signals

if TYPE_CHECKING:
    from ackclock.cli.run_jobs import Options
    from ackclock.experiments.cluster.target import Place
    from ackclock.experiments.search.result import Answer
    from ackclock.experiments.search.spec import Question

#: The exit statuses of verdicts.
STATUSES = {"holds": 0, "none": 4, "undecided": 5}

#: The title of a question without a scenario file.
QUESTION = "question"


Needs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="'METRIC >= VALUE'",
        help="What a setting must do, on average over the seeds; or <=.",
        autocompletion=completing.of("scalars"),
    ),
]
Varied: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=LOW..HIGH",
        help="A key, and the range or the list of its values.",
        autocompletion=completing.of("short|keys=,"),
    ),
]
Tried: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--try",
        metavar="NAME[,NAME]",
        help="Queue disciplines, or congestion controls.",
        autocompletion=completing.of("queue|congestion,"),
    ),
]
Smallest: TypeAlias = Annotated[
    bool, typer.Option("--smallest", help="The smallest value of the first range that meets all needs.")
]
Largest: TypeAlias = Annotated[bool, typer.Option("--largest", help="The largest.")]
Goals: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="min:METRIC",
        help="The best by a metric, min: or max:; with several, the frontier.",
        autocompletion=completing.of("best:"),
    ),
]
Rate: TypeAlias = Annotated[str | None, typer.Option(metavar="RATE", help="The bottleneck's rate, such as 1Gbit.")]
Rtt: TypeAlias = Annotated[str | None, typer.Option(metavar="TIME", help="The base round-trip time, such as 40ms.")]
Flows: TypeAlias = Annotated[int | None, typer.Option(metavar="N", help="Long flows (default: 1).")]
Congestion: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Their congestion control (default: cubic).",
        autocompletion=completing.of("congestion"),
    ),
]
Discipline: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The queue discipline (default: pfifo, 1bdp).", autocompletion=completing.of("queue")
    ),
]
Duration: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TIME", help="Length of a run (default: 40s, the first quarter not measured).")
]
Decides: TypeAlias = Annotated[
    str,
    typer.Option(metavar="NAME", help="The engine that decides.", autocompletion=completing.of("engines")),
]
Confirms: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="ENGINE",
        help="An engine that confirms the answer, such as linux.",
        autocompletion=completing.of("engines"),
    ),
]
Out: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of the answer (default: results/SCENARIO-find-KEYS-…, one a question)."),
]


def find(  # noqa: PLR0913 (each is an option of the command line)
    *,
    scenario: Annotated[
        Path | None, typer.Argument(metavar="[SCENARIO]", help="Scenario file; or a dumbbell by the options below.")
    ] = None,
    need: Needs = None,
    vary: Varied = None,
    try_: Tried = None,
    smallest: Smallest = False,
    largest: Largest = False,
    best: Goals = None,
    rate: Rate = None,
    rtt: Rtt = None,
    flows: Flows = None,
    congestion: Congestion = None,
    discipline: Discipline = None,
    duration: Duration = None,
    engine: Decides = "packet",
    confirm: Confirms = None,
    kernel: Kernel = None,
    module: Module = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The first seed.")] = 1,
    repeats: Annotated[
        int, typer.Option(metavar="N", help="At most this many seeds for a setting; one alone decides nothing.")
    ] = 32,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Start no run after this time, such as 60s; the same command resumes."),
    ] = None,
    out: Out = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON and nothing else.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be searched; run nothing.")] = False,
    check_phase: CheckPhase = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    cluster: Cluster = None,
) -> None:
    """Find the setting that meets what is needed: how large a buffer, which discipline, which congestion control.

    Cheap models say where to look first; simulations decide, with as many seeds as a verdict needs: the risk of a
    wrong verdict is below 5 % for the whole search. Finished runs are kept and used again, for another question
    about the same settings too.

    Keys are those of a scenario, or for short: limit, discipline, rate, rtt, flows, congestion.

    The exit status is 0 if there is such a setting, 4 if there is none, 5 if that is undecided.

    Examples:
        ackclock find --rate 1Gbit --rtt 40ms --flows 50 --need 'utilisation >= 99%' --vary limit=0.01bdp..2bdp

        ackclock find mine.toml --need 'queue_delay_p95 <= 20ms' --try pfifo,codel,fq_codel --best max:utilisation

        ackclock find mine.toml --need 'jain >= 0.9' --vary flows=2..64 --largest --confirm linux
    """
    from ackclock.cli import run_jobs as work

    work.check_number("--seed", seed, 0, 2**62)
    work.check_number("--repeats", repeats, 1, 1_000)
    work.check_number("--jobs", jobs, 1, 10_000)
    budget_s, there = _seconds(budget), work.place(scheduler, cluster, jobs)
    network = {"rate": rate, "rtt": rtt, "discipline": discipline}
    options = work.Options(
        ",".join(filter(None, [engine, confirm])), kernel, jobs=jobs, module=module, check_phase=check_phase
    )
    text = _text(scenario, network, flows, congestion, duration)
    asked = _question(
        text,
        options,
        _Asked(need or (), vary or (), try_, best or ()),
        _end(smallest, largest),
        {"engine": engine, "seed": seed, "repeats": repeats},
    )
    if dry_run:
        _tell(asked, as_json)
        return
    from ackclock.experiments.search import folder

    _perform(asked, out or folder.default(text[1], asked), confirm, options, budget_s, as_json, there)


class _Asked(NamedTuple):
    """What was asked, as it was typed."""

    needs: Sequence[str]
    varied: Sequence[str]
    tried: str | None
    goals: Sequence[str]


def _end(smallest: bool, largest: bool) -> str | None:
    if smallest and largest:
        raise InputError("--smallest: found --largest, too; expected one of them")
    return "smallest" if smallest else "largest" if largest else None


def _seconds(budget: str | None) -> float | None:
    from ackclock.input import units
    from ackclock.input.fields import shown

    try:
        return None if budget is None else units.time_s(budget)
    except units.UnitError as error:
        expected = error.expected.replace("20ms", "60s")
        raise InputError(f"--budget: found {shown(budget)}; expected {expected}") from None


def _text(
    path: Path | None, network: dict[str, str | None], flows: int | None, congestion: str | None, duration: str | None
) -> tuple[str, str]:
    """The scenario's text and name: the file's, or a dumbbell's."""
    from ackclock.input.source import named, source_text

    given = {**network, "flows": flows, "congestion": congestion, "duration": duration}
    if path is not None:
        if also := next((name for name, value in given.items() if value is not None), None):
            raise InputError(f"--{also}: found a scenario, too; expected one of them (or --vary {also}=VALUE)")
        return source_text(path), named(path)
    if lacking := [f"--{name}" for name in ("rate", "rtt") if network[name] is None]:
        raise InputError(f"{lacking[0]}: found nothing; expected a scenario file, or --rate and --rtt")
    return _dumbbell(network, flows or 1, congestion, duration), QUESTION


def _dumbbell(network: dict[str, str | None], flows: int | None, congestion: str | None, duration: str | None) -> str:
    """The scenario of a question that came without one."""
    from ackclock.input import units
    from ackclock.scenario import builder

    given = {**network, "flows": flows, "congestion": congestion, "duration": duration}
    try:
        return builder.text(**{name: value for name, value in given.items() if value is not None})
    except units.UnitError as error:
        raise InputError(f"--duration: found {duration!r}; expected {error.expected}") from None


def _question(
    text: tuple[str, str], options: Options, asked: _Asked, end: str | None, more: dict[str, Any]
) -> Question:
    from ackclock.cli import run_jobs as work
    from ackclock.experiments.search import candidates, constraints, objectives
    from ackclock.experiments.search.spec import question
    from ackclock.scenario import planning

    loaded = work.equipped(lambda: planning.loads(*text), options)
    axes = [*map(candidates.vary, asked.varied), *([candidates.tried(asked.tried)] if asked.tried else [])]
    return question(
        loaded, axes, [*map(constraints.need, asked.needs)], [*map(objectives.goal, asked.goals)], end=end, **more
    )


def _tell(asked: Question, as_json: bool) -> None:
    """What is looked for, and where."""
    from ackclock.scenario.points import label

    if as_json:
        typer.echo(json.dumps(asked.about))
        return
    typer.echo(asked.loaded.source.text)
    for vary in asked.varied:
        typer.echo(f"{vary.key}: {', '.join(map(label, vary.values))}")
    typer.echo(f"{asked.rows * asked.row:,} settings, up to {asked.repeats} seeds each, with the engine {asked.engine}")


def _perform(
    asked: Question,
    place: Path,
    confirm: str | None,
    options: Options,
    budget_s: float | None,
    as_json: bool,
    there: Place | None,
) -> None:
    from ackclock.cli import run_jobs as work
    from ackclock.cli.terminal import search_result as shown
    from ackclock.cli.terminal.progress import progress
    from ackclock.experiments.cluster import pool
    from ackclock.experiments.search import evaluator, folder
    from ackclock.experiments.search import search as finding

    if confirm and not asked.needs:
        raise InputError(f"--confirm: found {confirm} and no need; expected --need, which is what an engine confirms")
    for name in filter(None, [asked.engine, confirm]):
        evaluator.check(asked, name)
    if options.check_phase:
        evaluator.check_twin(asked)
    folder.check(place)
    names = work.engine_names(options.engines)
    if options.module and work.LINUX in names:
        work.check_module([point.plan for point in asked.loaded.points(asked.loaded.covering())], options.module)
    kept = f"interrupted; what is done is kept in {place}: the same command resumes"
    title = f"{place.name}: {asked.rows * asked.row:,} settings"
    with (
        signals.exit_message(kept),
        pool.running_at(there, names),
        work.brought_in(asked.plan(0), *names),
        progress(title) as bar,
    ):

        def keep(known: Answer) -> None:
            folder.write(known, place, command=command(), figure=False)
            bar(shown.share(known))

        found = finding.find(asked, runs=folder.runs(place, asked), jobs=options.jobs, budget_s=budget_s, tell=keep)
        if options.check_phase:
            found = finding.beside_its_twin(found, jobs=options.jobs)
        if confirm:
            found = finding.confirm(found, confirm, jobs=options.jobs)
    folder.write(found, place, command=command())
    if as_json:
        typer.echo(json.dumps(found.as_dict(), allow_nan=False))
    else:
        shown.print_answer(found)
        typer.echo(shown.cost(found), err=True)
    typer.echo(f"wrote {place}", err=as_json)
    if found.verdict != "holds":
        raise typer.Exit(STATUSES[found.verdict])
