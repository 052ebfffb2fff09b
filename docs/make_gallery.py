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

from ackclock.gallery import Entry, Result, ablation_runner, claims, entries, find, page
from ackclock.gallery.cases import SWITCHED
from ackclock.gallery.result import FULL, TABLE
from ackclock.gallery.runner import slug

GALLERY = Path(__file__).resolve().parent / "gallery"

INTRODUCTION = """# The gallery

Which sentences of a paper hold, and under what conditions? Here each headline claim of a study is one inequality over
measured values, evaluated for each engine, each way to read the paper, and hosts with and without noise. A paper's page
has the claims with their states, quotes and marks; below them are the entries, whose pages set printed numbers beside
ours. [Our states beside an audit by hand](audit.md) compares them with what a reader gave.

## States

- *Confirmed*: it holds wherever its interval decides, in two independent engines or more (ours, the Linux kernel, ns-2,
  ns-3) and with host noise. A claim about a model holds in the model; a claim about a model beside packets needs two
  simulators, too.
- *Confirmed if …*: the same, under a condition: a reading of the paper, or hosts that take time for packets or none.
- *Fails*: it holds nowhere that decides, in two engines or with an ablation that turns it, which is named.
- *Inconsistent in itself*, *not testable*: as the paper's page explains.
- *Undetermined*: one engine alone, engines that disagree, intervals that decide nothing, or no run with host noise.

In tables of engines ✓ means that a claim holds, ✗ that it fails, and ? that the intervals do not decide; ° marks a
single run, which has no interval.

Entries that a paper measured on one testbed are read in one way, which a written procedure chooses: the reading that
the text supports most, and among equals the likeliest over all printed numbers of the testbed. It is never chosen by
entry or by claim. What does not fit it is named once, on the paper's page.

`ackclock reproduce belhareth2014` prints a paper's claims, `ackclock claim braud2016.four-lead` where one holds, and
`ackclock reproduce B5.4` runs an entry; [how to add one](../guides/reproduce.md). Values are means over seeds with 95 %
intervals, at full scale; those of the kernel (`linux`) and of ns-2 (`ns2`) are at the scale of the entry's `linux.toml`
and `ns2.toml`. An entry's table has a verdict for each row, by bands that its `check.py` states as numbers: they
compare sizes and enter no state. *Ablations* toggle one mechanism (`ackclock reproduce B3.11 --ablation all`); that of
the name *host noise* lets hosts take time for packets.

`make gallery` runs everything, generates these pages, and resumes where it was interrupted. A row is by the engines'
version with which its entry ran last; `ackclock reproduce ID` runs an entry with yours. Those of B4.dd belong to one
machine and the day on which it was measured.

## Papers
"""


def main(results: Path | None, ids: Sequence[str]) -> None:
    """Takes the results over, then writes the pages."""
    GALLERY.mkdir(exist_ok=True)
    if results is not None:
        for entry in [find(name) for name in ids] or entries():
            switched = ablation_runner.place(results, entry) / SWITCHED
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
    every = Result.last(entry.folder / SWITCHED, entry.id).merged(new)
    there = [each.name for each in entry.mechanisms]
    kept = [row for row in every.rows if row.reading in there]
    Result(entry.id, kept).write(entry.folder / SWITCHED)


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
    """Every page by its file name, of papers' files, entries' tables and READMEs; without a table, without figures."""
    papers = claims.papers()
    drawn = {entry.id: figures(entry) for entry in known if claims.recorded(entry).rows}
    thumbnails = {name: found[0] for name, found in drawn.items()}
    made = {}
    for paper in papers:
        made[f"{paper.id}.md"] = page.paper_page(paper, thumbnails)
        for entry in paper.all_entries:
            judged = [claim for claim in paper.claims if entry.id in claim.entries]
            result, switched = claims.recorded(entry), claims.switched(entry)
            made[f"{entry.id}.md"] = page.entry_page(
                entry, result, *drawn.get(entry.id, ()), switched=switched, paper=paper, claims=judged
            )
    return {"index.md": page.index_page(papers, INTRODUCTION, thumbnails), "audit.md": page.audit_page(papers), **made}


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None, sys.argv[2:])
