"""Texts and HTML for the `repr` of results: a few lines in a terminal, a table in a notebook; numbers with units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

#: Maximum length of a line, in characters.
WIDTH = 110

#: Items of a list that are named; of a longer one the rest is counted.
MAX_NAMED = 8

#: Rows of a table in a notebook.
MAX_ROWS = 20


#: Unit → steps of (factor, name), greatest first.
SCALES = {
    "bit/s": ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "bit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "share": ((0.01, "%"),),
    "packets": ((1.0, "packets"),),
    "segments": ((1.0, "segments"),),
    "bytes": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")),
    "byte/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "bytes/s")),
}

#: Units of things that are counted: a whole number of them has no decimals.
COUNTED = ("", "packets", "bytes")

#: Text for a missing value.
NOTHING = "–"


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


def value(number: float | None, unit: str, digits: int = 3) -> str:
    """Return `95.7 Mb/s`, `84.4 ms`, `99.4 %`, `0.944`; `–` for null. At least `digits` significant digits."""
    if number is None:
        return NOTHING
    factor, name = scale(number, unit)
    whole = unit in COUNTED and factor == 1 and number == round(number)
    return joined(fixed(number / factor, 0 if whole else decimals(number / factor, digits)), name)


def interval(mean: float | None, low: float | None, high: float | None, unit: str) -> tuple[str, str]:
    """Return a mean and its interval in the same unit and digits: (`95.66 Mb/s`, `95.61 – 95.71`)."""
    if mean is None or low is None or high is None:
        return value(mean, unit), NOTHING
    factor, name = scale(mean, unit)
    middle, half = mean / factor, (high - low) / 2 / factor
    places = max(decimals(middle, 3), min(decimals(half, 1), decimals(middle, 3) + 1) if half > 0 else 0)
    texts = [fixed(number / factor, places) for number in (low, high)]
    return joined(fixed(middle, places), name), f"{texts[0]} – {texts[1]}"


def scale(number: float, unit: str) -> tuple[float, str]:
    """Return the divisor and the name of the unit that suits a number."""
    steps = SCALES.get(unit, ((1.0, ""),))
    for factor, name in steps:
        if abs(number) >= factor:
            return factor, name
    return next((step for step in steps if step[0] == 1), steps[0]) if number == 0 else steps[-1]


def decimals(number: float, digits: int) -> int:
    """Return the decimals that give a number `digits` significant digits; integers up to 99,999 are not cut."""
    if number == 0 or not math.isfinite(number):
        return 0
    return max(0, min(9, digits - 1 - math.floor(math.log10(abs(number)))))


def fixed(number: float, places: int) -> str:
    """Return a number with so many decimals, and no minus before a zero."""
    text = f"{number:,.{places}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.lstrip("-")


def joined(text: str, name: str) -> str:
    """Return a number with its unit, if it has one."""
    return f"{text} {name}" if name else text
