"""Values in foreign JSON: each is what was asked for, or unknown (None). Nothing here raises."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

JsonObject: TypeAlias = Mapping[str, Any]

#: Greatest whole number that all programs agree on (RFC 8259 section 6).
GREATEST = 2.0**53

NOTHING: JsonObject = {}


def number(data: JsonObject, *names: str) -> float | None:
    """Return the first of these fields that is a number from 0 to `GREATEST`, also as a string; None for none."""
    for name in names:
        if (value := _number(data.get(name))) is not None and value >= 0:
            return value
    return None


def signed(value: Any) -> float | None:
    """Return a number within ±`GREATEST`, also as a string; else None."""
    return _number(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return None
    return result if math.isfinite(result) and abs(result) <= GREATEST else None


def word(data: JsonObject, *names: str) -> str:
    """Return the first of these fields that is text; "" for none."""
    return next((value for name in names if isinstance(value := data.get(name), str)), "")


def table(data: JsonObject, name: str) -> JsonObject:
    """Return a field that is an object; an empty one for none."""
    value = data.get(name)
    return value if isinstance(value, dict) else NOTHING


def tables(data: JsonObject, name: str) -> Iterator[JsonObject]:
    """Yield the objects of a field that is an array."""
    value = data.get(name)
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def integer(value: Any) -> int | None:
    """Return a whole number from 0 to `GREATEST`, also as a string; else None."""
    result = _number(value)
    return int(result) if result is not None and result >= 0 and result == int(result) else None


def ranges(value: Any) -> Iterator[tuple[int, int]]:
    """Yield the ranges of packet numbers of an ACK frame, first and last: `[[1, 4], [7]]`, or `[["1", "4"]]`."""
    for item in value if isinstance(value, list) else ():
        ends = [integer(end) for end in (item if isinstance(item, list) else [item])]
        if ends and ends[0] is not None and ends[-1] is not None:
            yield min(ends[0], ends[-1]), max(ends[0], ends[-1])
