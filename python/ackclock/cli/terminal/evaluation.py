"""Output of `ackclock evaluate`: the scorecard, what is more harmful, what changed and what is not covered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
from rich.text import Text

from ackclock.cli.terminal import output
from ackclock.evaluate import SECTIONS, dossier
from ackclock.evaluate.cases import Case
from ackclock.evaluate.run import NOT_SELECTED, Evaluation, Request
from ackclock.evaluate.verdicts import MARGIN, Change, Finding
from ackclock.repr_format import counted

#: Findings that the outcome names.
MAX_WORST = 3


def print_cases(cases: Sequence[Case], request: Request) -> None:
    """List the scenarios by section, and the number of runs at the first look and at the last."""
    table = output.table("section", "scenario", "points", left=2)
    runs = 0
    for case in cases:
        table.add_row(case.judged.section, case.name, str(len(case.points)))
        runs += len(case.points) * (len(request.algorithms) + (case.judged.victim is not None))
    output.console().print(table)
    first, last = request.sizes[0], request.sizes[-1]
    click.echo(
        f"{counted(len(cases), 'scenario')}: {runs * first:,} runs, up to {runs * last:,} where verdicts are undecided"
    )


def print_evaluation(evaluation: Evaluation, changes: Sequence[Change] | None) -> None:
    """Print the outcome, the scorecard, the changes and the sections without a scenario."""
    console = output.console()
    console.print(Text(f"{evaluation.request.name} by RFC 9743", style="bold"))
    console.print(Text(dossier.summary(evaluation)))
    several = len(evaluation.request.engines) > 1
    table = output.table("section", "criterion", "more harmful", "not more", "undecided", "worse", left=2)
    for score in dossier.scorecard(evaluation):
        criterion = f"{SECTIONS[score.section]} ({score.engine})" if several else SECTIONS[score.section]
        table.add_row(score.section, criterion, *dossier.cells(score))
    console.print(table)
    console.print(
        "The numbers count comparisons. Not more harmful: the excess of harm over a reference is less than "
        f"{MARGIN * 100:g} % (non-inferior). Worse: the tested flows' own results."
    )
    if changes is not None:
        _print_changes(changes)
    for line in _worst_findings(evaluation):
        console.print(line)
    reasons = evaluation.not_covered
    missing = [section for section, reason in reasons.items() if reason != NOT_SELECTED]
    console.print(f"Not covered: {', '.join(missing)}; the dossier has the reasons.")
    if left := [section for section, reason in reasons.items() if reason == NOT_SELECTED]:
        console.print(f"Not selected by --quick or --section: {', '.join(left)}.")


def _worst_findings(evaluation: Evaluation) -> Iterator[str]:
    """Yield the findings with the greatest excess of harm, at most one a section and engine."""
    worst = [score.worst for score in dossier.scorecard(evaluation) if score.worst and score.worst.smallest]
    worst.sort(key=lambda finding: -finding.smallest.mean if finding.smallest else 0.0)
    if worst:
        yield "Most harmful, with the excess of harm over the closest reference:"
    for finding in worst[:MAX_WORST]:
        told = dossier.sentence(finding, evaluation.request)
        yield f"  {_place(finding)}: {told}; excess {dossier.excess_text(finding)}"


def _place(finding: Finding) -> str:
    """Return the section, which the names of the package's scenarios begin with, the scenario and the point."""
    point, case = dossier.point_text(finding), finding.case
    name = case if case.startswith(finding.section) else f"{finding.section} {case}"
    return f"{name} ({point})" if point else name


def _print_changes(changes: Sequence[Change]) -> None:
    if not changes:
        click.echo("Nothing changed significantly.")
        return
    table = output.table("changed", "point", "metric", "before", "after", "excess", left=5)
    for change in changes:
        after = change.after
        texts = [after.case, dossier.point_text(after), after.metric, change.before.sentence, after.sentence]
        table.add_row(*map(Text, [*texts, dossier.change_text(change)]))
    output.console().print(table)


def print_failing(failing: Sequence[Finding], unjudged: Sequence[str], request: Request) -> None:
    """Print each verdict that a requirement rules out, and each required section without any, to standard error."""
    for finding in failing:
        click.echo(f"{_place(finding)}: {finding.sentence}: {dossier.sentence(finding, request)}", err=True)
    for section in unjudged:
        click.echo(f"{section}: nothing was judged: the runs have no value of its metrics", err=True)
