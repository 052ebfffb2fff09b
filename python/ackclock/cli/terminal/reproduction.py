"""The output of `ackclock reproduce` and `ackclock claim`: papers, claims with their states, results of entries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.cli.terminal import output
from ackclock.cli.terminal.output import progress
from ackclock.errors import InputError
from ackclock.experiments.executors import Executor
from ackclock.figures import numbers
from ackclock.gallery import ablation_runner, claims, page, runner
from ackclock.gallery.cases import Ablation
from ackclock.gallery.claims import Claim, Paper
from ackclock.gallery.entry import Entry
from ackclock.gallery.inequalities import CONFIRMED, CONFIRMED_IF, FAILS, STATES, Outcome
from ackclock.gallery.result import QUICK, TABLE, Judged, Result
from ackclock.gallery.rows import AGREES, CONTRADICTS, DIFFERS, NOT_MEASURED, UNDETERMINED

COLOURS = {AGREES: "green", DIFFERS: "yellow", UNDETERMINED: "cyan", NOT_MEASURED: "magenta", CONTRADICTS: "red"}

#: Colours of claims' states.
STATE_COLOURS = {CONFIRMED: "green", CONFIRMED_IF: "yellow", FAILS: "red", UNDETERMINED: "cyan"}


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a run; with `force` also what is up to date is run."""

    out: Path
    quick: bool
    jobs: int | None
    as_json: bool
    command: str
    force: bool = False
    executor: Executor | None = None

    @property
    def console(self) -> Console:
        """The console for people: standard error if JSON is on standard output."""
        return output.console(err=self.as_json)

    def current_results(self, entries: Sequence[Entry]) -> dict[str, Result]:
        """Return the results of entries that are up to date, by their names."""
        if self.force:
            return {}
        results = {entry.id: runner.stored_result(entry, self.out / entry.id, quick=self.quick) for entry in entries}
        return {name: result for name, result in results.items() if result}

    def current_ablations(self, chosen: Mapping[Entry, Sequence[Ablation]]) -> dict[str, Result]:
        """Return the results of entries' ablations that are up to date, by the entries' names."""
        if self.force:
            return {}
        results = {
            entry.id: ablation_runner.stored_result(entry, of, ablation_runner.place(self.out, entry), quick=self.quick)
            for entry, of in chosen.items()
        }
        return {name: result for name, result in results.items() if result}

    def run(self, title: str, make: Callable[..., Result]) -> Result:
        """Make a result with these settings, below a progress bar."""
        with progress(title) as report_progress:
            return make(
                quick=self.quick,
                jobs=self.jobs,
                progress=report_progress,
                command=self.command,
                executor=self.executor,
            )

    def print_folder(self, folder: Path, *, is_kept: bool) -> None:
        """Print the folder of a result, and whether it was kept."""
        text = f"kept {folder}: up to date (--force runs it anyway)" if is_kept else f"wrote {folder}"
        self.console.print(text, soft_wrap=True)


def run_entries(entries: Sequence[Entry], settings: Settings, kept: Mapping[str, Result]) -> None:
    """Run entries, each into its folder of `out`, and print each result, new or kept."""
    for entry in entries:
        runner.check_folder(settings.out / entry.id)
    for entry in entries:
        folder = settings.out / entry.id
        result = kept.get(entry.id) or settings.run(entry.id, partial(runner.run, entry, folder))
        if settings.as_json:
            print(json.dumps(_result_as_dict(entry, result), allow_nan=False), flush=True)
        else:
            print_result(entry, result, settings.console)
        settings.print_folder(folder, is_kept=entry.id in kept)


def _result_as_dict(entry: Entry, result: Result) -> dict[str, Any]:
    """Return a result for JSON; a preview has the rows recorded at full scale with it."""
    recorded = {"recorded": claims.recorded(entry).as_dict()["engines"]} if result.scale == QUICK else {}
    return {"title": entry.title, **result.as_dict(), **recorded}


def ablations_of(entries: Sequence[Entry], names: Sequence[str]) -> dict[Entry, Sequence[Ablation]]:
    """Return these ablations of each entry. Raises `InputError` for unknown names, or if there are none."""
    chosen = {entry: entry.switched(names) for entry in entries}
    if not any(chosen.values()):
        raise InputError("--ablation: found entries without ablations; expected one with some")
    return chosen


def run_ablations(chosen: Mapping[Entry, Sequence[Ablation]], settings: Settings, kept: Mapping[str, Result]) -> None:
    """Run ablations of entries, each entry's into a folder of `out`, and print what they change."""
    for entry in chosen:
        runner.check_folder(ablation_runner.place(settings.out, entry))
    for entry, of in chosen.items():
        if not of:
            continue
        folder = ablation_runner.place(settings.out, entry)
        result = kept.get(entry.id) or settings.run(entry.id, partial(ablation_runner.run, entry, of, folder))
        if settings.as_json:
            rows = [asdict(row) for row in result.rows]
            print(json.dumps({"id": entry.id, "scale": result.scale, "ablations": rows}, allow_nan=False), flush=True)
        else:
            settings.console.print(Text(f"{entry.id}: {entry.title}", style="bold"))
            _print_ablations(entry, Result.last(entry.folder / TABLE, entry.id), result, settings.console)
        settings.print_folder(folder, is_kept=entry.id in kept)


def print_papers(papers: Sequence[Paper], entries: Sequence[Entry]) -> None:
    """Print each paper with the states of its claims and its entries, then the entries of no paper."""
    table = output.table("id", "title", left=2)
    for paper in papers:
        counts = Counter(claim.state.name for claim in paper.claims)
        states = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
        table.add_row(Text(paper.id, style="bold"), Text(f"{paper.short}: {states}", style="bold"))
        for entry in paper.all_entries:
            table.add_row(f"  {entry.id}", Text(entry.title))
    of_papers = {name for paper in papers for name in paper.entries}
    for entry in entries:
        if entry.id not in of_papers:
            table.add_row(entry.id, Text(entry.title))
    console = output.console()
    console.print(table)
    console.print("\nackclock reproduce PAPER prints its claims; ackclock reproduce ID runs an entry.")


def print_paper(paper: Paper, *, as_json: bool) -> None:
    """Print the claims of a paper with their states, of the recorded results."""
    if as_json:
        made = [_as_dict(claim) for claim in paper.claims]
        print(json.dumps({"paper": paper.id, "title": paper.title, "claims": made}, allow_nan=False), flush=True)
        return
    console = output.console()
    console.print(Text(f"{paper.short}: {paper.title}", style="bold"))
    for testbed in paper.testbeds:
        console.print(Text(f"{testbed.name}: read as {paper.joint(testbed).reading.name}"))
    table = output.table("claim", "state", "in the paper's words", left=3)
    table.columns[0].no_wrap = True  # it is to be copied
    for claim in paper.claims:
        table.add_row(claim.id, _state(claim), Text(_quoted(claim)))
    console.print(table)
    console.print(f"\nackclock claim {paper.id}.CLAIM prints where a claim holds; --run runs the paper's entries.")


def print_claim(claim: Claim, *, as_json: bool) -> None:
    """Print a claim: its state, its inequality and its robustness vector."""
    if as_json:
        print(json.dumps(_as_dict(claim), allow_nan=False), flush=True)
        return
    console = output.console()
    console.print(Text.assemble((claim.full_id, "bold"), ": ", _state(claim)))
    console.print(Text(f"Section {claim.section}: {_quoted(claim)}"))
    if claim.holds:
        console.print(Text(f"judged by {', '.join(claim.entries)}: {claim.holds}"))
    table = output.table("reading", "host noise", "scale", "engine", "", left=5)
    for cell in claim.cells:
        noise = "yes" if cell.noise else "no"
        table.add_row(cell.reading or "each", noise, cell.scale or "the entry's", cell.label, page.mark(cell))
    console.print(table)
    single = "; ° a single run, without an interval" if any(cell.single for cell in claim.cells) else ""
    console.print(f"✓ it holds, ✗ it fails, ? not decided{single}")
    for mechanism in claim.state.mechanisms:
        console.print(Text(f"turned by {mechanism}"))
    for mechanism in claim.partial_mechanisms:
        console.print(Text(f"turned in part by {mechanism}"))


def vary_claim(claim: Claim, text: str, *, as_json: bool) -> None:
    """Run a claim's entry with a varied key, and print where the claim turns."""
    varied = ablation_runner.Varied.parse(text)
    console = output.console(err=as_json)
    console.print(Text.assemble((claim.full_id, "bold"), f": {claim.holds}"))

    def report(value: float, outcome: Outcome) -> None:
        console.print(Text(f"  {varied.key} = {varied.value(value)}: {TRUTHS[outcome.truth]}"))

    found = ablation_runner.turning_point(claim, varied, report)
    if as_json:
        print(json.dumps({"id": claim.full_id, "key": varied.key, "unit": varied.unit, "turns_between": found}))
    elif found is None:
        console.print("It does not turn in this range.")
    else:
        between = " and ".join(str(varied.value(value)) for value in found)
        console.print(Text(f"It turns between {between} of {varied.key}."))


#: Words for the truth of a claim.
TRUTHS = {True: "holds", False: "fails", None: "undetermined"}


def _quoted(claim: Claim) -> str:
    return f"“{claim.quote}”" + (f", in English: {claim.translation}" if claim.translation else "")


def _state(claim: Claim) -> Text:
    return Text(str(claim.state), style=STATE_COLOURS.get(claim.state.name, ""))


def _as_dict(claim: Claim) -> dict[str, object]:
    """For JSON."""
    cells = [
        {
            "engine": cell.label,
            "reading": cell.reading,
            "host_noise": cell.noise,
            "scale": cell.scale,
            "holds": cell.truth,
        }
        for cell in claim.cells
    ]
    return {
        "id": claim.full_id,
        "quote": claim.quote,
        "section": claim.section,
        "inequality": claim.holds,
        "state": claim.state.name,
        "why": claim.state.why,
        "mechanisms": list(claim.state.mechanisms),
        "partial_mechanisms": list(claim.partial_mechanisms),
        "cells": cells,
    }


def print_result(entry: Entry, result: Result, console: Console) -> None:
    """Print each published claim, and below it the reproduced values, with verdicts and reasons."""
    console.print(Text(f"{entry.id}: {entry.title}", style="bold"))
    width = max((len(_label(row)) for row in result.rows), default=0)
    recorded = claims.recorded(entry)
    by_origin = {_origin(row): row for row in recorded.rows} if result.scale == QUICK else {}
    for claim in entry.published.values():
        console.print(Text.assemble("\n", claim.what, "; published: ", (claim.published, "bold")))
        rows = [(row, by_origin.get(_origin(row))) for row in result.rows if row.claim == claim.claim]
        _print_rows(rows, claim.unit, width, console)
    baseline = recorded if result.scale == QUICK else recorded.merged(result)
    _print_ablations(entry, baseline, claims.switched(entry), console)
    if result.scale == QUICK:
        console.print("\nAt the reduced scale of --quick this is a preview.")


def _origin(row: Judged) -> tuple[str, str, str, str]:
    """Return what a row has in common with that of another run."""
    return row.engine, row.reading, row.claim, row.at


def _print_ablations(entry: Entry, result: Result, ablation: Result, console: Console) -> None:
    """Print the effect of each ablation: the value without and with the change, and the verdicts."""
    for each in entry.mechanisms:
        rows = [row for row in ablation.rows if row.reading == each.name]
        if not rows:
            continue
        console.print(Text.assemble("\n", (each.name, "bold"), f": {each.description}"))
        headings = ("", "engine", "baseline", "with the change", "verdict")
        table = output.table(*headings, left=5, padding=(0, 2, 0, 0), pad_edge=True, header_style="")
        for row in rows:
            what, _, *others = page.moved(entry, result, each.reading, row)
            table.add_row(*map(Text, (what, *others)))
        console.print(table)


#: Minimum widths of the columns after a row's label: value, interval, verdict, reason; and the space between them.
WIDTHS, BETWEEN = (9, 17, 11, 15), 10


def _print_rows(rows: Sequence[tuple[Judged, Judged | None]], unit: str, width: int, console: Console) -> None:
    """Print a line for each row, and one for its recorded value if it is a preview.

    On a narrow terminal the label is on a line above.
    """
    if width + sum(WIDTHS) + BETWEEN <= console.width:
        table = _table((width, *WIDTHS))
        for row, recorded in rows:
            _add_row(table, _label(row), row, recorded, unit)
        console.print(table)
        return
    for row, recorded in rows:
        console.print(Text(f"  {_label(row)}"))
        table = _table((0, *WIDTHS))
        _add_row(table, "", row, recorded, unit)
        console.print(table)


def _add_row(table: Table, label: str, row: Judged, recorded: Judged | None, unit: str) -> None:
    table.add_row(Text(label), *_cells(row, unit))
    if recorded:
        table.add_row("", *_cells(replace(recorded, why="recorded at full scale"), unit), style="dim")


def _table(widths: Sequence[int]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
    for width in widths:
        table.add_column(min_width=width)
    return table


def _cells(row: Judged, unit: str) -> tuple[str | Text, ...]:
    mean, interval = numbers.interval(row.reproduced, row.ci95_low, row.ci95_high, unit)
    return mean, f"({interval})", Text(page.verdict(row), style=COLOURS[row.verdict]), Text(row.why)


def _label(row: Judged) -> str:
    return ", ".join(filter(None, (row.at, row.reading, row.engine)))
