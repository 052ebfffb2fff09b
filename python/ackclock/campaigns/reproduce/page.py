"""The pages of the gallery, in Markdown: made from an entry's tables and README, and from nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ackclock.campaigns.reproduce.entry import Entry
from ackclock.campaigns.reproduce.result import QUICK, Judged, Result
from ackclock.views import numbers

MADE = "<!-- Made by `make gallery` from reproductions/: edit those. -->\n\n"


#: A README's link to another entry's; on the site it is the entry's page.
_LINK = re.compile(r"\(\.\./([^/)]+)/README\.md\)")


def index_page(found: Sequence[tuple[Entry, Result]], introduction: str) -> str:
    """The overview: a line for each row of each entry that counts."""
    lines = []
    for entry, result in found:
        link = f"[{entry.id}]({entry.id}.md)"
        lines.append((f"**{link}**", f"**{entry.title}**", "", "", "", f"**{result.verdict}**"))
        lines += [("", *cells(entry, row)) for row in result.rows if row.counts]
    head = ("id", "what", "published", "engine", "reproduced", "verdict")
    return MADE + introduction + "\n" + _table(head, lines)


def entry_page(entry: Entry, result: Result, *drawn: str) -> str:
    """An entry's page: the verdict, the figures, the rows with their reasons, where the paper says it, the README."""
    look = " (a short look: not the scale that a verdict needs)" if result.scale == QUICK else ""
    rows = [(*cells(entry, row), row.why) for row in result.rows]
    head = ("what", "published", "engine", "reproduced (95 % interval)", "verdict", "why: it is")
    sources = [(claim.what, claim.published, claim.where, claim.how) for claim in entry.published.values()]
    return "\n".join((
        f"{MADE}# {entry.title}",
        "",
        f"`ackclock reproduce {entry.id}` · verdict: **{result.verdict}**{look}",
        "",
        "\n\n".join(f"![{entry.title}]({figure})" for figure in drawn),
        "",
        _table(head, rows),
        "## What the paper says",
        "",
        _table(("what", "published", "where", "how it was read"), sources),
        _LINK.sub(r"(\1.md)", entry.text),
    ))  # fmt: skip


def cells(entry: Entry, row: Judged) -> tuple[str, str, str, str, str]:
    """What, published, engine, reproduced with its interval, verdict."""
    claim = entry.published[row.claim]
    mean, interval = numbers.interval(row.reproduced, row.ci95_low, row.ci95_high, claim.unit)
    what = f"{claim.what}, {row.at}" if row.at else claim.what
    value = f"{mean} ({interval})" if interval != numbers.NOTHING else mean
    return what, claim.published, row.engine, value, verdict(row)


def verdict(row: Judged) -> str:
    """The verdict's word, in parentheses where it does not count."""
    return row.verdict if row.counts else f"({row.verdict})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
