"""The output of `ackclock reproduce`: the list of the entries, and the table of one that was run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.cli.terminal import output
from ackclock.cli.terminal.output import progress
from ackclock.errors import InputError
from ackclock.experiments.executors import Executor
from ackclock.figures import numbers
from ackclock.gallery import ablation_runner, ablations, page, runner
from ackclock.gallery.ablations import Ablation
from ackclock.gallery.entry import Entry
from ackclock.gallery.result import QUICK, Judged, Result
from ackclock.gallery.verdict import AGREES, CONTRADICTS, DIFFERS, NOT_MEASURED, UNDETERMINED

COLOURS = {AGREES: "green", DIFFERS: "yellow", UNDETERMINED: "cyan", NOT_MEASURED: "magenta", CONTRADICTS: "red"}


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
        self.console.print(text, markup=False, soft_wrap=True)


def run_entries(entries: Sequence[Entry], settings: Settings, kept: Mapping[str, Result]) -> None:
    """Run entries, each into its folder of `out`, and print each result, new or kept."""
    for entry in entries:
        runner.check_folder(settings.out / entry.id)
    for entry in entries:
        folder = settings.out / entry.id
        result = kept.get(entry.id) or settings.run(entry.id, partial(runner.run, entry, folder))
        if settings.as_json:
            print(json.dumps({"title": entry.title, **result.as_dict()}, allow_nan=False), flush=True)
        else:
            print_result(entry, result, settings.console)
        settings.print_folder(folder, is_kept=entry.id in kept)


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
            _print_ablations(entry, Result.last(entry.folder / runner.TABLE, entry.id), result, settings.console)
        settings.print_folder(folder, is_kept=entry.id in kept)


def print_entries(entries: Sequence[Entry]) -> None:
    """Print for each entry its id, title and last verdict at full scale, and the verdicts of its interpretations."""
    table = output.table("id", "title", "verdict", left=3)
    for entry in entries:
        last = Result.last(entry.folder / runner.TABLE, entry.id)
        table.add_row(entry.id, Text(entry.title), _verdict(last.verdict if last.rows else "not run yet"))
        for reading in entry.readings.every:
            table.add_row(
                "", Text(f"  interpretation: {reading.name}"), Text(page.outcome(entry, last, reading.name)[0])
            )
    console = output.console()
    console.print(table)
    console.print("\nackclock reproduce ID runs one.")


def print_result(entry: Entry, result: Result, console: Console) -> None:
    """Print each published claim, and below it the reproduced values, with verdicts and reasons."""
    console.print(Text(f"{entry.id}: {entry.title}", style="bold"))
    width = max((len(_label(row)) for row in result.rows), default=0)
    for claim in entry.published.values():
        console.print(Text.assemble("\n", claim.what, "; published: ", (claim.published, "bold")))
        _print_rows([row for row in result.rows if row.claim == claim.claim], claim.unit, width, console)
    _print_interpretations(entry, result, console)
    _print_ablations(entry, result, Result.last(entry.folder / ablations.TABLE, entry.id), console)
    console.print(Text.assemble("\nOverall: ", _verdict(result.verdict)))
    if result.scale == QUICK:
        console.print("At the reduced scale of --quick this is a preview, not a verdict.")


def _print_interpretations(entry: Entry, result: Result, console: Console) -> None:
    """Print the verdict of each interpretation, if the paper is ambiguous."""
    if not result.readings:
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name in result.readings:
        verdict, why = page.outcome(entry, result, name)
        colour = COLOURS[result.of_reading(name)]
        table.add_row(Text(name), Text(verdict, style=colour), Text(f"the paper's figures {why}" if why else ""))
    console.print("\nBy interpretation:")
    console.print(table)


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


def _print_rows(rows: Sequence[Judged], unit: str, width: int, console: Console) -> None:
    """Print a line for each row; on a narrow terminal its label is on a line above."""
    if width + sum(WIDTHS) + BETWEEN <= console.width:
        table = _table((width, *WIDTHS))
        for row in rows:
            table.add_row(Text(_label(row)), *_cells(row, unit))
        console.print(table)
        return
    for row in rows:
        console.print(Text(f"  {_label(row)}"))
        table = _table((0, *WIDTHS))
        table.add_row("", *_cells(row, unit))
        console.print(table)


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


def _verdict(verdict: str) -> Text:
    return Text(verdict, style=COLOURS.get(verdict, ""))
