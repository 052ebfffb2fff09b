"""Sentences of the documentation that state a result, and whether they are true.

Such a sentence is followed, on its line, by `<!-- so: EXPRESSION -->`: Python that must be true. Where the page's
examples run, it is evaluated on what they print (`make_examples.py`). Pages whose tables were recorded, by long runs or
by a real kernel, are their own record: there it is evaluated on what stands on the page, by `tests/docs` and by the
command that makes the page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

import ackclock as ac

ROOT = Path(__file__).resolve().parents[1]

#: Pages that are kept with what was recorded.
RECORDED = (
    "docs/concepts/abcc-fit.md",
    "docs/concepts/abcc-sensitivity.md",
    "docs/concepts/fitted-models.md",
    "docs/concepts/linux.md",
    "docs/concepts/mean-field.md",
    "docs/concepts/metrics.md",
    "docs/concepts/programs.md",
    "docs/concepts/scoreboard.md",
    "docs/concepts/simulators.md",
    "docs/guides/host.md",
    "docs/guides/testbed.md",
    "docs/index.md",
    *sorted(
        str(page.relative_to(ROOT)) for part in ("dossiers", "gallery") for page in (ROOT / "docs" / part).glob("*.md")
    ),
)

CLAIM = re.compile(r"(?<!`)<!--\s+so:\s+(.+?)\s-->", re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\|\n?){3,}", re.MULTILINE)
NUMBER = re.compile(r"[-+]?[\d.]*\d(?:[\d,]*\d)?(?:e[-+]?\d+)?")
SECONDS = {"ms": 1e-3, "µs": 1e-6}


def claims(text: str) -> Iterator[tuple[str, str]]:
    """The sentences of a page that are checked, each with its expression."""
    for found in CLAIM.finditer(text):
        paragraph = CLAIM.sub("", text[: found.start()]).rstrip().rsplit("\n\n", 1)[-1]
        yield re.split(r"(?<=[.!?]) ", " ".join(paragraph.split()))[-1], " ".join(found[1].split())


def untrue(text: str) -> list[str]:
    """The expressions of a recorded page that are not true of it."""
    names = names_of(text)
    return [found[1] for found in CLAIM.finditer(text) if not true(found[1], names)]


def true(expression: str, names: dict[str, Any]) -> bool:
    """Return True if a claim holds, given its names. Its lines may be broken at any space, within texts too."""
    one_line = re.sub(r"\s*\n\s*", " ", expression)
    return bool(eval(f"({one_line})", names))  # noqa: S307 (the pages are our own)


def names_of(text: str) -> dict[str, Any]:
    """Return the names that a claim about a text may use.

    `said(PATTERN)` are the texts that a group of the pattern matches, `numbers(PATTERN)` the numbers in them;
    `rows(WORDS, …)` the first table below these words, found one after the other, as a mapping from column to cell for
    each row. `cells(COLUMN, WORDS, …)` is what stands below a head that begins so, in the rows of all tables that have
    all of these words (`| packet |` is a whole cell), `values` the numbers there, `value` the only one. `page="docs/…"`
    means another page than this one. `number(CELL)` is a cell's first number, times in seconds. `csv(PATH)` is a table
    of the repository.
    """

    def of(page: str | None) -> str:
        return CLAIM.sub("", (ROOT / page).read_text(encoding="utf-8") if page else text)

    def matches(pattern: str, page: str | None = None) -> list[str]:
        return [one[one.lastindex or 0] for one in re.finditer(pattern, of(page), re.MULTILINE)]

    def values(column: str, *words: str, page: str | None = None) -> list[float]:
        return [number(cell) for cell in cells(of(page), column, *words)]

    def value(column: str, *words: str, page: str | None = None) -> float:
        (only,) = values(column, *words, page=page)
        return only

    return {
        "ac": ac,
        "cells": lambda column, *words, page=None: cells(of(page), column, *words),
        "csv": lambda path: pl.read_csv(ROOT / path),
        "number": number,
        "numbers": lambda pattern, page=None: [number(each) for each in matches(pattern, page)],
        "said": matches,
        "rows": lambda *words, page=None: rows(of(page), *words),
        "value": value,
        "values": values,
    }


def number(cell: str) -> float:
    """The first number in a cell."""
    found = NUMBER.search(cell)
    if found is None:
        raise ValueError(f"no number in {cell!r}")
    unit = cell[found.end() :].split()[:1]
    return float(found[0].replace(",", "")) * SECONDS.get("".join(unit), 1.0)


def rows(text: str, *words: str) -> list[dict[str, str]]:
    """The first table below these words."""
    place = 0
    for each in words:
        place = text.index(each, place) + len(each)
    table = TABLE.search(text, place)
    if table is None:
        raise ValueError(f"no table below {words}")
    return _rows(table[0])


def cells(text: str, column: str, *words: str) -> list[str]:
    """Return the cells below a heading that begins with `column`, in all tables' rows that have all of these words."""
    found = [
        cell
        for table in TABLE.finditer(text)
        for row in _rows(table[0])
        if all(word in f"| {' | '.join(row.values())} |" for word in words)
        for cell in [cell for head, cell in row.items() if head.startswith(column)][:1]
    ]
    if not found:
        raise ValueError(f"no row with {words} has {column!r}")
    return found


def _rows(table: str) -> list[dict[str, str]]:
    head, _, *body = map(_cells, table.splitlines())
    return [dict(zip(head, line, strict=True)) for line in body]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def write(path: Path, text: str) -> None:
    """Writes a page that has been made. Exits with status 1 if a sentence of it is no longer true."""
    path.write_text(text, encoding="utf-8")
    if wrong := untrue(text):
        sys.exit("\n".join(f"no longer true in {path.relative_to(ROOT)}: {claim}" for claim in wrong))
