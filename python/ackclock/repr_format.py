"""Texts and HTML for the `repr` of results: a few lines in a terminal, a table in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

#: Maximum length of a line, in characters.
WIDTH = 110

#: Items of a list that are named; of a longer one the rest is counted.
MAX_NAMED = 8


def lines(*texts: str) -> str:
    """Join texts as lines of at most `WIDTH` characters, without line breaks inside."""
    return "\n".join(_cut(" ".join(text.split())) for text in texts)


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def listed(items: Iterable[object]) -> str:
    """Return `1, 2, 3`, or the first items and the number of the others."""
    every = [str(item) for item in items]
    more = len(every) - MAX_NAMED
    return ", ".join(every) if more <= 0 else f"{', '.join(every[:MAX_NAMED])} and {more:,} more"


def counted(number: int, noun: str) -> str:
    """Return `1 flow`, `2,000 flows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def measured(duration_s: float, warmup_s: float) -> str:
    """Return `60 s, the first 10 s not measured`."""
    return f"{duration_s:g} s" + (f", the first {warmup_s:g} s not measured" if warmup_s else "")


def html(title: str, texts: Sequence[str], heads: Sequence[str] = (), rows: Iterable[Sequence[object]] = ()) -> str:
    """Return a heading, lines, and a table; all texts are escaped."""
    table = _table(heads, rows) if heads else ""
    return f"<div><b>{escape(title)}</b>{''.join(f'<br>{escape(text)}' for text in texts)}{table}</div>"


def text(title: str, content: str) -> str:
    """Return a heading, and a preformatted text."""
    return f"<div><b>{escape(title)}</b><pre>{escape(content)}</pre></div>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def values(table: Mapping[str, object]) -> str:
    """Return parameters in a line: `limit_packets 13, ecn False`."""
    return ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in table.items())  # fmt: skip
