"""`ackclock find`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ackclock.cli import completion, options
from ackclock.cli.command import FILE, Argument, Command
from ackclock.cli.sweep import STATUSES
from ackclock.errors import InputError
from ackclock.system import signals

if TYPE_CHECKING:
    from ackclock.cli.run_jobs import Options
    from ackclock.experiments.cluster import Target
    from ackclock.experiments.search.result import SearchResult
    from ackclock.experiments.search.spec import Question

#: The name of a scenario that is made of options.
UNNAMED = "question"


@click.command(cls=Command)
@click.argument(
    "scenario",
    cls=Argument,
    metavar="[SCENARIO]",
    type=FILE,
    required=False,
    help="Scenario file; without one, a dumbbell made of the options below.",
)
@options.require
@click.option(
    "--vary",
    metavar="KEY=LOW..HIGH",
    multiple=True,
    shell_complete=completion.assignment(several=True),
    help="A key with a range, or a list of values.",
)
@click.option(
    "--candidates",
    metavar="NAME[,NAME]",
    shell_complete=completion.list_of(completion.queues, completion.congestion),
    help="Qdiscs and AQMs, each with its own limit, congestion control algorithms, or TCP stacks, to compare.",
)
@click.option("--smallest", is_flag=True, help="The smallest value of the first range that meets all requirements.")
@click.option("--largest", is_flag=True, help="The largest such value.")
@options.best
@click.option(
    "--allow-starvation",
    is_flag=True,
    help="Accept settings under which a group of flows gets less than a tenth of its max-min fair share.",
)
@click.option("--rate", metavar="RATE", help="Bottleneck rate, such as 1Gbit.")
@click.option("--rtt", metavar="TIME", help="Base round-trip time, such as 40ms.")
@click.option("--flows", metavar="N", type=int, help="Number of long-lived flows (default: 1).")
@click.option(
    "--congestion",
    metavar="NAME",
    shell_complete=completion.one_of(completion.congestion),
    help="Their congestion control algorithm (default: cubic).",
)
@click.option(
    "--discipline",
    metavar="NAME",
    shell_complete=completion.one_of(completion.queues),
    help="Queue discipline, with its default limit (default: pfifo, 1bdp).",
)
@click.option("--duration", metavar="TIME", help="Duration of a run (default: 40s, of which 10s are warm-up).")
@click.option(
    "--engine",
    metavar="NAME",
    default="packet",
    shell_complete=completion.one_of(completion.engines),
    help="Engine that decides.",
)
@click.option(
    "--confirm",
    metavar="ENGINE",
    shell_complete=completion.one_of(completion.engines),
    help="Engine that confirms the result, such as linux.",
)
@options.kernel
@options.module
@options.stack
@click.option("--seed", metavar="N", type=int, default=1, help="The first seed.")
@click.option(
    "--repeats", metavar="N", type=int, default=32, help="Maximum number of seeds for a setting; at least two decide."
)
@click.option("--budget", metavar="TIME", help="Start no run after this time, such as 60s; the same command resumes.")
@options.out("Folder of the result (default: results/SCENARIO-find-KEYS-…, one for each question).")
@options.json_flag("Print the result as JSON only.")
@options.dry_run_flag("Print the search space; run nothing.")
@options.perturb
@options.parallel
@options.collected
def find(  # noqa: PLR0913 (each is an option of the command line)
    chosen: Options,
    *,
    scenario: Path | None,
    require: Sequence[str],
    vary: Sequence[str],
    candidates: str | None,
    smallest: bool,
    largest: bool,
    best: Sequence[str],
    allow_starvation: bool,
    rate: str | None,
    rtt: str | None,
    flows: int | None,
    congestion: str | None,
    discipline: str | None,
    duration: str | None,
    confirm: str | None,
    budget: str | None,
    as_json: bool,
    dry_run: bool,
) -> None:
    r"""Find the setting that meets requirements: the buffer size, the AQM, the congestion control algorithm.

    Analytical models propose where to search; simulations decide, with as many seeds as a verdict requires: the
    probability of a wrong verdict is below 5 % for the whole search. Finished runs are kept, and reused for other
    questions about the same settings.

    A requirement may be on a group of flows, by its name: goodput[web]. Where groups of long-lived flows compete, none
    may starve, unless --allow-starvation is given.

    Keys are those of a scenario, or one of limit, discipline, queue, rate, rtt, flows, congestion.

    The exit status is 0 if such a setting exists, 4 if there is none, 5 if that is undecided.

    Examples:
        ackclock find --rate 1Gbit --rtt 40ms --flows 50 \
            --require 'utilisation >= 99%' --vary limit=0.01bdp..2bdp
        ackclock find mine.toml --require 'queue_delay_p95 <= 20ms' \
            --candidates pfifo,codel,fq_codel --best max:utilisation
        ackclock find mine.toml --require 'fct_p95[web] <= 500ms' --candidates red,codel,fq_codel
        ackclock find mine.toml --require 'jain >= 0.9' --vary flows=2..64 --largest
    """
    from ackclock.cli import run_jobs
    from ackclock.experiments.search import result

    run_jobs.check_number("--seed", chosen.seed, 0, 2**62)
    run_jobs.check_number("--repeats", chosen.repeats, 1, 1_000)
    run_jobs.check_number("--jobs", chosen.jobs, 1, 10_000)
    budget_s, target = _seconds(budget), chosen.target
    engines = replace(chosen, engine=",".join(filter(None, [chosen.engine, confirm])))
    network = {"rate": rate, "rtt": rtt, "discipline": discipline}
    text = _scenario_text(scenario, {**network, "flows": flows, "congestion": congestion, "duration": duration})
    if smallest and largest:
        raise InputError("--smallest: found --largest, too; expected one of them")
    question = _question(
        text,
        engines,
        (require, vary, candidates, best),
        end="smallest" if smallest else "largest" if largest else None,
        engine=chosen.engine,
        seed=chosen.seed,
        repeats=chosen.repeats,
        allow_starvation=allow_starvation,
    )
    if dry_run:
        _print_question(question, as_json)
    else:
        place = chosen.out or result.default(text[1], question)
        _perform(question, place, confirm, engines, budget_s, as_json, target)


def _seconds(budget: str | None) -> float | None:
    from ackclock.input import units
    from ackclock.input.fields import shown

    try:
        return None if budget is None else units.time_s(budget)
    except units.UnitError as error:
        expected = error.expected.replace("20ms", "60s")
        raise InputError(f"--budget: found {shown(budget)}; expected {expected}") from None


def _scenario_text(path: Path | None, given: Mapping[str, Any]) -> tuple[str, str]:
    """Return the scenario's text and name: the file's, or a dumbbell's."""
    import tomli_w

    from ackclock.input import units
    from ackclock.scenario import builder, planning

    present = {name: value for name, value in given.items() if value is not None}
    if path is not None:
        if name := next(iter(present), None):
            raise InputError(f"--{name}: found a scenario, too; expected one of them (or --vary {name}=VALUE)")
        source = planning.source(path)
        return source.text, source.name
    if missing := next((name for name in ("rate", "rtt") if name not in present), None):
        raise InputError(f"--{missing}: found nothing; expected a scenario file, or --rate and --rtt")
    try:
        return tomli_w.dumps(builder.content(**{"flows": 1} | present)), UNNAMED
    except units.UnitError as error:
        raise InputError(f"--duration: found {given['duration']!r}; expected {error.expected}") from None


def _question(
    text: tuple[str, str],
    chosen: Options,
    typed: tuple[Sequence[str], Sequence[str], str | None, Sequence[str]],
    **more: Any,
) -> Question:
    """Parse requirements, ranges, candidates and objectives as they were typed."""
    from ackclock.cli import run_jobs
    from ackclock.experiments.search import candidates, criteria
    from ackclock.experiments.search.spec import question
    from ackclock.scenario import planning

    require, vary, names, best = typed
    loaded = run_jobs.apply_options(lambda: planning.loads(*text), chosen)
    axes = candidates.axes(vary, names, loaded.source.toml())
    return question(
        loaded, axes, [*map(criteria.parse_constraint, require)], [*map(criteria.parse_objective, best)], **more
    )


def _print_question(question: Question, as_json: bool) -> None:
    from ackclock.scenario.points import label

    if as_json:
        click.echo(json.dumps(question.about))
        return
    click.echo(question.loaded.source.text)
    for vary in question.varied:
        click.echo(f"{vary.key}: {', '.join(map(label, vary.values))}")
    count = question.rows * question.row
    click.echo(f"{count:,} settings, up to {question.repeats} seeds each, with the engine {question.engine}")


def _perform(
    question: Question,
    folder_path: Path,
    confirm: str | None,
    chosen: Options,
    budget_s: float | None,
    as_json: bool,
    target: Target | None,
) -> None:
    from ackclock.cli import run_jobs
    from ackclock.cli.terminal import settings
    from ackclock.cli.terminal.output import progress
    from ackclock.experiments import cluster
    from ackclock.experiments.search import evaluator, result, search

    if confirm and not question.constraints:
        raise InputError(f"--confirm: found {confirm} and no requirement; expected --require, which an engine confirms")
    for name in filter(None, [question.engine, confirm]):
        evaluator.check(question, name)
    if chosen.perturb:
        evaluator.check_perturbed(question)
    result.check(folder_path)
    names = run_jobs.engine_names(chosen.engine)
    if chosen.module:
        points = question.loaded.points(question.loaded.sample())
        run_jobs.check_module([(point.plan, name) for point in points for name in names], chosen.module)
    with (
        signals.exit_message(f"interrupted; finished runs are kept in {folder_path}: the same command resumes"),
        cluster.opened_if(target, names) as executor,
        run_jobs.module_loaded(question.plan(0), *names),
        progress(f"{folder_path.name}: {question.rows * question.row:,} settings") as report_progress,
    ):

        def keep(answer: SearchResult) -> None:
            result.write(answer, folder_path, command=chosen.command, figure=False)
            report_progress(settings.progress_share(answer))

        runs = result.runs(folder_path, question)
        answer = search.find(question, runs=runs, jobs=chosen.jobs, executor=executor, budget_s=budget_s, tell=keep)
        if chosen.perturb:
            answer = search.compare_perturbed(answer, jobs=chosen.jobs, executor=executor)
        if confirm:
            answer = search.confirm(answer, confirm, jobs=chosen.jobs, executor=executor)
    result.write(answer, folder_path, command=chosen.command)
    if as_json:
        click.echo(json.dumps(answer.as_dict(), allow_nan=False))
    else:
        settings.print_search(answer)
        click.echo(settings.cost(answer), err=True)
    click.echo(f"wrote {folder_path}", err=as_json)
    if answer.verdict != "holds":
        raise click.exceptions.Exit(STATUSES[answer.verdict])
