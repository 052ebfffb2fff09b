"""Makes the gallery's pages in docs/gallery from the results of the reproductions.

    ackclock reproduce --all --out results/gallery
    python docs/make_gallery.py results/gallery [ID…]

takes `reproduced.csv` of all entries, or of those named, into `reproductions/ID/` and their figures into
`docs/gallery/`, and writes the pages. Of results of some engines or readings alone (`ackclock reproduce ID --engine
NAMES`, `--interpretation NAMES`) the rows take the place of theirs, and the figure comes below the other. Those of
ablations (`ackclock reproduce ID --ablation all`) go into `switched.csv` and onto the page. Without a folder the pages
are written from what is there. All of it is kept in the repository: a run at full scale takes minutes.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ackclock.gallery import Entry, Result, ablation_runner, ablations, entries, find, page
from ackclock.gallery.result import FULL
from ackclock.gallery.runner import TABLE, slug

GALLERY = Path(__file__).resolve().parent / "gallery"

INTRODUCTION = """# The gallery

This gallery lists published results and shows how well ackclock reproduces them. Each entry compares what a paper
states with what ackclock computes. Its verdict, *agrees*, *differs* or *contradicts*, follows from a rule that the
entry's `check.py` states as numbers: two bands around the published claim. A value inside the inner band agrees, one
inside the outer band differs quantitatively only, and one outside both contradicts. A row without a value in any run is
*not measured*. A row is *undetermined* if its interval reaches from what agrees to what contradicts, or if its verdict
changes once hosts take time to process packets, which shows that its flows were phase-locked. An entry's verdict is the
worst of its rows, in the order agrees, differs, undetermined, not measured, contradicts. Rows in parentheses on an
entry's page are asides that do not count.

Where a paper's wording allows several *interpretations*, each has its own runs and its own verdict. What the paper
prints besides its claims (rows with a †) refutes interpretations that do not reproduce it; the entry takes the verdict
of the best interpretation that remains. Interpretations that have not been run yet are listed as *not measured* and do
not count.

`ackclock reproduce` lists the entries and `ackclock reproduce B5.4` runs one; [how to add one](../guides/reproduce.md).
Values are means over seeds with 95 % intervals, at full scale. Those of the kernel (`linux`) are at the scale of the
entry's `linux.toml`, those of ns-2 itself (`ns2`) at that of its `ns2.toml`. Rows of an engine that does not support
what they require are not measured and do not count. `make gallery` generates these pages and resumes where it was
interrupted.

Where an entry's page has a section *Mechanisms, tested by ablation*, each proposed mechanism was tested by toggling it
in a separate run (`ackclock reproduce B3.11 --ablation all`). The rows that this changes are shown with those of the
entry. They do not count.

`ackclock reproduce ID --dry-run` lists how many results an entry needs. Rows and ablation runs come from the current
version of the engines, except those of B4.dd, which belong to one machine and the day on which it was measured.
"""


def main(results: Path | None, ids: Sequence[str]) -> None:
    """Takes the results over, then writes the pages."""
    GALLERY.mkdir(exist_ok=True)
    if results is not None:
        for entry in [find(name) for name in ids] or entries():
            switched = ablation_runner.place(results, entry) / ablations.TABLE
            if switched.is_file():
                take_mechanisms(entry, switched)
            if (results / entry.id).is_dir() or not switched.is_file():
                take(entry, results / entry.id)
    for name, text in pages(entries()).items():
        (GALLERY / name).write_text(text, encoding="utf-8")


def take(entry: Entry, folder: Path) -> None:
    """Takes a result's table and figure over. Stops at a result of `--quick`.

    Of some engines or readings alone, their rows take the place of those that are there, and their figure comes beside
    the other.
    """
    new = Result.read(folder / TABLE, entry.id)
    if new.scale != FULL:
        raise SystemExit(f"{folder}: a result of --quick; the gallery needs the full scale")
    run = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["reproduction"]
    engines, readings = run.get("engines", entry.all_engines), run.get("readings", entry_readings(entry))
    alone = [*_if_some(engines, entry.all_engines), *_if_some(readings, entry_readings(entry))]
    if alone:
        Result.last(entry.folder / TABLE, entry.id).merged(new).write(entry.folder / TABLE)
        if readings or any((folder / engine).is_dir() for engine in engines):
            shutil.copyfile(folder / "figure.png", GALLERY / f"{entry.id}-{slug('-'.join(alone))}.png")
        return
    for stale in figures(entry):
        (GALLERY / stale).unlink(missing_ok=True)
    shutil.copyfile(folder / TABLE, entry.folder / TABLE)
    shutil.copyfile(folder / "figure.png", GALLERY / f"{entry.id}.png")


def take_mechanisms(entry: Entry, table: Path) -> None:
    """Takes rows of switched runs over, in place of those of the same mechanisms, and drops those of others.

    Stops at a result of `--quick`.
    """
    new = Result.read(table, entry.id)
    if new.scale != FULL:
        raise SystemExit(f"{table.parent}: a result of --quick; the gallery needs the full scale")
    every = Result.last(entry.folder / ablations.TABLE, entry.id).merged(new)
    there = [each.name for each in entry.mechanisms]
    kept = [row for row in every.rows if row.reading in there]
    Result(entry.id, kept).write(entry.folder / ablations.TABLE)


def _if_some(names: Sequence[str], every: Sequence[str]) -> Sequence[str]:
    return names if len(names) < len(every) else []


def entry_readings(entry: Entry) -> list[str]:
    """The names of its readings."""
    return [reading.name for reading in entry.readings.every]


def figures(entry: Entry) -> list[str]:
    """The names of its figures: of all engines, then of some engines or readings alone."""
    parts = [*entry.all_engines, *map(slug, entry_readings(entry))]
    alone = [path.name for part in parts for path in GALLERY.glob(f"{entry.id}-*{part}.png")]
    whole = f"{entry.id}.png"
    partly = alone and entry.readings.every and not (GALLERY / whole).is_file()
    return [*([] if partly else [whole]), *sorted(set(alone))]


def pages(known: Iterable[Entry]) -> dict[str, str]:
    """Every page by its file name, from the entries' tables and READMEs; of one without a table, without figures."""
    found = [(entry, Result.last(entry.folder / TABLE, entry.id)) for entry in known]
    made = {
        f"{entry.id}.md": page.entry_page(
            entry,
            result,
            *(figures(entry) if result.rows else []),
            switched=Result.last(entry.folder / ablations.TABLE, entry.id),
        )
        for entry, result in found
    }
    return {"index.md": page.index_page(found, INTRODUCTION), **made}


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None, sys.argv[2:])
