"""The pages of the gallery, in Markdown: made from an entry's tables and README, and from nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ackclock.figures import numbers
from ackclock.gallery.entry import Entry
from ackclock.gallery.result import QUICK, Judged, Result
from ackclock.gallery.verdict import NOT_MEASURED, VERDICTS

MADE = "<!-- Made by `make gallery` from reproductions/: edit those. -->\n\n"


#: A README's link to another entry's; on the site it is the entry's page.
_LINK = re.compile(r"\(\.\./([^/)]+)/README\.md\)")


#: The papers, by what their entries' ids begin with.
PAPERS = {
    "B": "Belhareth 2014",
    "D": "Alizadeh and others 2010",
    "G": "Guillier 2008",
    "K": "Kumar and others 2010",
    "L": "Le 2011",
    "R": "Braud 2016",
}


def index_page(found: Sequence[tuple[Entry, Result]], introduction: str) -> str:
    """The overview: verdicts by paper, and a line for each row of the decisive interpretation that counts."""
    lines = []
    for entry, result in found:
        link = f"[{entry.id}]({entry.id}.md)"
        lines.append([f"**{link}**", f"**{entry.title}**", "", "", "", f"**{result.verdict}**"])
        for row in result.counting:
            what, *others = cells(entry, row)
            lines.append(["", f"{what}; read as: {row.reading}" if row.reading else what, *others])
    head = ("id", "what", "published", "engine", "reproduced", "verdict")
    entries = papers([(entry.id, result.verdict) for entry, result in found], "entries")
    rows = papers([(entry.id, row.verdict) for entry, result in found for row in result.counting], "rows")
    return f"{MADE}{introduction}\n{entries}\n{WORST}\n{rows}\n{_table(head, lines)}"


#: Text between the verdicts of entries and those of their rows.
WORST = """An entry's verdict is that of its worst row. The table below has the rows. Where there are several
interpretations, it has those of the one that gives the verdict; the entry's page has all of them.
"""


def papers(verdicts: Sequence[tuple[str, str]], what: str) -> str:
    """Return the number of entries or rows of each paper by verdict."""
    counts = {
        paper: Counter(verdict for name, verdict in verdicts if name.startswith(sign)) for sign, paper in PAPERS.items()
    }
    counts = {paper: found for paper, found in counts.items() if found}
    counts["all"] = Counter(verdict for _, verdict in verdicts)
    lines = [
        (paper, str(found.total()), *(str(found[verdict]) for verdict in VERDICTS)) for paper, found in counts.items()
    ]
    return _table(("paper", what, *VERDICTS), lines)


def entry_page(entry: Entry, result: Result, *drawn: str, switched: Result | None = None) -> str:
    """An entry's page: the verdict, the figures, the rows with their reasons, where the paper says it, the README.

    Where there are interpretations, a table of them comes first. `switched` are the rows of its mechanisms.
    """
    look = " (a preview: not the scale that a verdict needs)" if result.scale == QUICK else ""
    sources = [(claim.what, claim.published, claim.where, claim.how) for claim in entry.published.values()]
    return "\n".join((
        f"{MADE}# {entry.title}",
        "",
        f"`ackclock reproduce {entry.id}` · verdict: **{result.verdict}**{look}",
        "",
        *([_readings(entry, result)] if entry.readings.every else []),
        *(["\n\n".join(f"![{entry.title}]({figure})" for figure in drawn), ""] if drawn else []),
        _rows(entry, result) if result.rows else f"{UNRUN}\n",
        *([_mechanisms(entry, result, switched)] if switched and switched.rows else []),
        "## Published claims",
        "",
        _table(("what", "published", "where", "how it was obtained"), sources),
        _LINK.sub(r"(\1.md)", entry.text),
    ))  # fmt: skip


#: Text on the page of an entry without a result.
UNRUN = "The rule exists; the entry has not been run at full scale yet."


def _readings(entry: Entry, result: Result) -> str:
    """Return the interpretations that the paper allows, and the verdict of each."""
    lines = [
        (reading.name, reading.description, *outcome(entry, result, reading.name)) for reading in entry.readings.every
    ]
    return _table(("interpretation", "what the paper's wording allows", "verdict", "the paper's own figures"), lines)


def outcome(entry: Entry, result: Result, reading: str) -> tuple[str, str]:
    """Return an interpretation's verdict, in parentheses where it is refuted, and what refutes or supports it."""
    if reading not in result.readings:
        return NOT_MEASURED, ""
    verdict = result.of_reading(reading)
    if refuting := result.refuted(reading):
        claims = dict.fromkeys(entry.published[row.claim].what for row in refuting)
        return f"({verdict})", f"refute it: {', '.join(claims)}"
    decided = any(row.decides and row.n for row in result.rows if row.reading in ("", reading))
    return verdict, "do not refute it" if decided else ""


def _rows(entry: Entry, result: Result) -> str:
    """The rows with their reasons; a column of interpretations where they are of several."""
    head = ("what", "published", "engine", "reproduced (95 % interval)", "verdict", "why: it is")
    if not result.readings:
        return _table(head, [(*cells(entry, row), row.why) for row in result.rows])
    rows = [(row.reading or "each", *cells(entry, row), row.why) for row in result.rows]
    return _table(("interpretation", *head), rows)


def _mechanisms(entry: Entry, result: Result, switched: Result) -> str:
    """Each mechanism that was run: what is said of it, and what its rows were before and are with the change."""
    head = ("what", "published", "engine", "as it is", "with the change", "verdict")
    parts = ["## Mechanisms, tested by ablation", ""]
    for each in entry.mechanisms:
        if rows := [row for row in switched.rows if row.reading == each.name]:
            on = f", read as: {each.reading}" if each.reading else ""
            lines = [moved(entry, result, each.reading, row) for row in rows]
            parts += [f"**{each.name}**{on}. {each.description}", "", _table(head, lines)]
    return "\n".join(parts)


def moved(entry: Entry, result: Result, reading: str, row: Judged) -> tuple[str, ...]:
    """A row of a switched run beside that of the run as it is: what, published, engine, both values, both verdicts."""
    what, published, engine, value, now = cells(entry, row)
    engines = set(row.engine.split(", "))  # a mechanism may be run by some of those that a row sets beside each other
    found = [
        one
        for one in result.rows
        if (one.claim, one.at) == (row.claim, row.at)
        and engines <= set(one.engine.split(", "))
        and one.reading in ("", reading)
    ]
    if not found:
        return what, published, engine, numbers.NOTHING, value, now
    _, _, _, before, was = cells(entry, found[0])
    return what, published, engine, before, value, now if now == was else f"{was} → {now}"


def cells(entry: Entry, row: Judged) -> tuple[str, str, str, str, str]:
    """Return claim, published value, engine, reproduced value with its interval, and verdict. † marks deciding rows."""
    claim = entry.published[row.claim]
    mean, interval = numbers.interval(row.reproduced, row.ci95_low, row.ci95_high, claim.unit)
    what = ", ".join(filter(None, (claim.what, row.at)))
    what = f"{what} †" if row.decides else what
    value = f"{mean} ({interval})" if interval != numbers.NOTHING else mean
    return what, claim.published, row.engine, value, verdict(row)


def verdict(row: Judged) -> str:
    """The verdict's word, in parentheses where it does not count."""
    return row.verdict if row.counts else f"({row.verdict})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
