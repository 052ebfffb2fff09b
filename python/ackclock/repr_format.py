"""How a result shows itself where a line of Python ends with it: three lines of text, or a table in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

#: Longest line of a `repr`, in characters.
WIDTH = 110

#: Of long lists so many are named.
MOST_NAMED = 8


def lines(*texts: str) -> str:
    """Lines that are not too long; what is in them has no line breaks."""
    return "\n".join(_cut(" ".join(text.split())) for text in texts)


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def listed(items: Iterable[object]) -> str:
    """`1, 2, 3`; of many the first ones and how many more there are."""
    every = [str(item) for item in items]
    more = len(every) - MOST_NAMED
    return ", ".join(every) if more <= 0 else f"{', '.join(every[:MOST_NAMED])} and {more:,} more"


def counted(number: int, thing: str) -> str:
    """`1 flow`, `2,000 flows`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def measured(duration_s: float, warmup_s: float) -> str:
    """`60 s, the first 10 s not measured`."""
    return f"{duration_s:g} s" + (f", the first {warmup_s:g} s not measured" if warmup_s else "")


def html(title: str, texts: Sequence[str], heads: Sequence[str] = (), rows: Iterable[Sequence[object]] = ()) -> str:
    """A heading, lines, and a table whose first column is of names. All of it is text: nothing in it is mark-up."""
    table = _table(heads, rows) if heads else ""
    return f"<div><b>{escape(title)}</b>{''.join(f'<br>{escape(text)}' for text in texts)}{table}</div>"


def text(title: str, lines_of: str) -> str:
    """A heading, and a text as it stands in a file."""
    return f"<div><b>{escape(title)}</b><pre>{escape(lines_of)}</pre></div>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def values(table: Mapping[str, object]) -> str:
    """Parameters in a line: `limit_packets 13, ecn False`."""
    return ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in table.items())  # fmt: skip
