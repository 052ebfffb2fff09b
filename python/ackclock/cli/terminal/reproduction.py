"""What `ackclock reproduce` shows: the list of the entries, and the table of one that was run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ackclock.cli.terminal.progress import progress
from ackclock.errors import InputError
from ackclock.figures import numbers
from ackclock.gallery import ablation_runner, ablations, page, runner
from ackclock.gallery.ablations import Mechanism
from ackclock.gallery.entry import Entry
from ackclock.gallery.result import QUICK, Judged, Result
from ackclock.gallery.verdict import AGREES, CONTRADICTS, DIFFERS, NOT_MEASURED, UNDETERMINED

COLOURS = {AGREES: "green", DIFFERS: "yellow", UNDETERMINED: "cyan", NOT_MEASURED: "magenta", CONTRADICTS: "red"}


@dataclass(frozen=True, slots=True)
class Running:
    """How entries are run and shown: `again` what stands, too."""

    out: Path
    quick: bool
    jobs: int | None
    as_json: bool
    command: str
    again: bool = False

    @property
    def screen(self) -> Console:
        """Where people read."""
        return Console(emoji=False, highlight=False, stderr=self.as_json)

    def standing(self, entries: Sequence[Entry]) -> dict[str, Result]:
        """Results of entries that need not be made again, by their names."""
        if self.again:
            return {}
        found = {entry.id: runner.standing_result(entry, self.out / entry.id, quick=self.quick) for entry in entries}
        return {name: result for name, result in found.items() if result}

    def switched(self, chosen: Mapping[Entry, Sequence[Mechanism]]) -> dict[str, Result]:
        """Those of their mechanisms."""
        if self.again:
            return {}
        found = {
            entry.id: ablation_runner.standing_result(
                entry, of, ablation_runner.place(self.out, entry), quick=self.quick
            )
            for entry, of in chosen.items()
        }
        return {name: result for name, result in found.items() if result}

    def told(self, folder: Path, *, stood: bool) -> None:
        """Says where a result is, and why it was not made again."""
        said = (
            f"kept {folder}: nothing has changed since it was made (--again runs it anyway)"
            if stood
            else f"wrote {folder}"
        )
        self.screen.print(said, markup=False, soft_wrap=True)


def run_all(entries: Sequence[Entry], how: Running, standing: Mapping[str, Result]) -> None:
    """Runs entries one after the other, each into its folder of `out`, and shows each when it is done, or stands."""
    for entry in entries:
        runner.check_folder(how.out / entry.id)
    for entry in entries:
        folder = how.out / entry.id
        result = standing.get(entry.id) or _run(entry, folder, how)
        if how.as_json:
            print(json.dumps({"title": entry.title, **result.as_dict()}, allow_nan=False), flush=True)
        else:
            print_result(entry, result, how.screen)
        how.told(folder, stood=entry.id in standing)


def _run(entry: Entry, folder: Path, how: Running) -> Result:
    with progress(entry.id) as tell:
        return runner.run(entry, folder, quick=how.quick, jobs=how.jobs, progress=tell, command=how.command)


def switched(entries: Sequence[Entry], names: Sequence[str]) -> dict[Entry, Sequence[Mechanism]]:
    """These mechanisms of each entry. Raises `InputError` for unknown names, or if there are none at all."""
    chosen = {entry: entry.switched(names) for entry in entries}
    if not any(chosen.values()):
        raise InputError("--mechanism: found entries without mechanisms; expected one with some")
    return chosen


def switch_all(chosen: Mapping[Entry, Sequence[Mechanism]], how: Running, standing: Mapping[str, Result]) -> None:
    """Runs mechanisms of entries, each entry's into a folder of `out`, and shows what they move."""
    for entry in chosen:
        runner.check_folder(ablation_runner.place(how.out, entry))
    for entry, of in chosen.items():
        if not of:
            continue
        folder = ablation_runner.place(how.out, entry)
        found = standing.get(entry.id) or _switch(entry, of, folder, how)
        if how.as_json:
            rows = [asdict(row) for row in found.rows]
            print(json.dumps({"id": entry.id, "scale": found.scale, "mechanisms": rows}, allow_nan=False), flush=True)
        else:
            how.screen.print(Text(f"{entry.id}: {entry.title}", style="bold"))
            print_mechanisms(entry, Result.last(entry.folder / runner.TABLE, entry.id), found, how.screen)
        how.told(folder, stood=entry.id in standing)


def _switch(entry: Entry, of: Sequence[Mechanism], folder: Path, how: Running) -> Result:
    with progress(entry.id) as tell:
        return ablation_runner.run(
            entry, of, folder, quick=how.quick, jobs=how.jobs, progress=tell, command=how.command
        )


def print_entries(entries: Sequence[Entry]) -> None:
    """One line an entry: id, title, and the verdict of its last run at full scale; below it, those of its readings."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("id", "what it is", "verdict"):
        table.add_column(heading)
    for entry in entries:
        last = Result.last(entry.folder / runner.TABLE, entry.id)
        table.add_row(entry.id, Text(entry.title), _verdict(last.verdict if last.rows else "not run yet"))
        for reading in entry.readings.every:
            table.add_row("", Text(f"  read as: {reading.name}"), Text(page.outcome(entry, last, reading.name)[0]))
    screen = Console(emoji=False, highlight=False)
    screen.print(table)
    screen.print("\nackclock reproduce ID runs one.")


def print_result(entry: Entry, result: Result, screen: Console) -> None:
    """Each published claim, and below it what was reproduced, with its verdict and why."""
    screen.print(Text(f"{entry.id}: {entry.title}", style="bold"))
    width = max((len(_place(row)) for row in result.rows), default=0)
    for claim in entry.published.values():
        screen.print(Text.assemble("\n", claim.what, "; published: ", (claim.published, "bold")))
        _print_rows([row for row in result.rows if row.claim == claim.claim], claim.unit, width, screen)
    _print_readings(entry, result, screen)
    print_mechanisms(entry, result, Result.last(entry.folder / ablations.TABLE, entry.id), screen)
    screen.print(Text.assemble("\nOver all: ", _verdict(result.verdict)))
    if result.scale == QUICK:
        screen.print("At the reduced scale of --quick this is a preview, not a verdict.")


def _print_readings(entry: Entry, result: Result, screen: Console) -> None:
    """What each reading came to, where the paper can be read in several ways."""
    if not result.readings:
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name in result.readings:
        verdict, why = page.outcome(entry, result, name)
        colour = COLOURS[result.of_reading(name)]
        table.add_row(Text(name), Text(verdict, style=colour), Text(f"the paper's figures {why}" if why else ""))
    screen.print("\nBy reading:")
    screen.print(table)


def print_mechanisms(entry: Entry, result: Result, switched: Result, screen: Console) -> None:
    """What each mechanism moves: the value as it is, with the change, and the verdicts."""
    for each in entry.mechanisms:
        rows = [row for row in switched.rows if row.reading == each.name]
        if not rows:
            continue
        screen.print(Text.assemble("\n", (each.name, "bold"), f": {each.says}"))
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="")
        for heading in ("", "engine", "as it is", "with the change", "verdict"):
            table.add_column(heading)
        for row in rows:
            what, _, *others = page.moved(entry, result, each.reading, row)
            table.add_row(*map(Text, (what, *others)))
        screen.print(table)


#: Widths of the columns behind a row's place, at least: value, interval, verdict, why; and what lies between them.
WIDTHS, BETWEEN = (9, 17, 11, 15), 10


def _print_rows(rows: Sequence[Judged], unit: str, width: int, screen: Console) -> None:
    """A line for each row; where the terminal is too narrow, its place stands above."""
    if width + sum(WIDTHS) + BETWEEN <= screen.width:
        table = _table((width, *WIDTHS))
        for row in rows:
            table.add_row(Text(_place(row)), *_cells(row, unit))
        screen.print(table)
        return
    for row in rows:
        screen.print(Text(f"  {_place(row)}"))
        table = _table((0, *WIDTHS))
        table.add_row("", *_cells(row, unit))
        screen.print(table)


def _table(widths: Sequence[int]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
    for least in widths:
        table.add_column(min_width=least)
    return table


def _cells(row: Judged, unit: str) -> tuple[str | Text, ...]:
    mean, interval = numbers.interval(row.reproduced, row.ci95_low, row.ci95_high, unit)
    return mean, f"({interval})", Text(page.verdict(row), style=COLOURS[row.verdict]), Text(row.why)


def _place(row: Judged) -> str:
    return ", ".join(filter(None, (row.at, row.reading, row.engine)))


def _verdict(verdict: str) -> Text:
    return Text(verdict, style=COLOURS.get(verdict, ""))
