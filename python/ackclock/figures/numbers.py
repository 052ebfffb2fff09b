"""Numbers for people: a scaled unit, and as many digits as mean something.

Used by everything that prints a number for people: the command line, figures, findings, the gallery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ackclock.repr_format import NOTHING, SCALES, decimals, fixed, interval, joined, scale, value

__all__ = [
    "NOTHING",
    "SCALES",
    "block",
    "engine",
    "estimate",
    "estimate_or_ends",
    "evidence_items",
    "evidence_line",
    "interval",
    "scale",
    "signed",
    "value",
]


def engine(manifest: Mapping[str, Any]) -> str:
    """Return the engine of a result, with its model if it has several: `theory engine (pendulum)`.

    Nothing of a result that no engine made.
    """
    name, model = manifest.get("engine"), manifest.get("model")
    return (f"{name} engine" if name else "") + (f" ({model})" if model else "")


def block(size_bytes: int) -> str:
    """Return a disk's block size, a power of two: `64 KiB`."""
    return f"{size_bytes >> 10} KiB" if size_bytes < 1 << 20 else f"{size_bytes >> 20} MiB"


def estimate(mean: float | None, low: float | None, high: float | None, unit: str) -> str:
    """Return `95.66 ± 0.05 Mb/s`: half the interval, the longer half where it was cut; without an interval the mean."""
    if mean is None or low is None or high is None:
        return value(mean, unit)
    factor, name = scale(mean, unit)
    middle, half = mean / factor, max(mean - low, high - mean) / factor
    places = _places(middle, half)
    return joined(f"{fixed(middle, places)} ± {fixed(half, places)}", name)


def estimate_or_ends(mean: float | None, low: float | None, high: float | None, unit: str) -> str:
    """Return an estimate, with the ends of its interval where a bound cut one of them: `94.7 % (88.4–100)`.

    The bounds of metrics are whole numbers in their unit: 0, 1, 100 %.
    """
    if mean is None or low is None or high is None:
        return value(mean, unit)
    factor, name = scale(mean, unit)
    middle, *ends = (number / factor for number in (mean, low, high))
    places = _places(middle, max(middle - ends[0], ends[1] - middle))
    if round(middle - ends[0], places) == round(ends[1] - middle, places):
        return estimate(mean, low, high, unit)
    texts = (fixed(end, 0 if end.is_integer() else places) for end in ends)
    return f"{joined(fixed(middle, places), name)} ({'–'.join(texts)})"


def _places(middle: float, half: float) -> int:
    return max(decimals(middle, 3), min(decimals(half, 1), decimals(middle, 3) + 1))


def signed(number: float | None, unit: str, half: float | None = None) -> str:
    """Return a difference with its sign, and half the width of its interval if any: `+1.2 ± 0.3 ms`."""
    if number is None:
        return NOTHING
    greatest = max(abs(number), half or 0.0)
    factor, name = scale(greatest, unit)
    places = decimals(greatest / factor, 3)
    text = fixed(number / factor, places)
    sign = "+" if number > 0 and text.strip("0.") else ""
    return joined(sign + text + ("" if half is None else f" ± {fixed(half / factor, places)}"), name)


#: Suffix of a key → its unit.
ENDINGS = {"_bytes_s": "byte/s", "_bps": "bit/s", "_bytes": "bytes", "_s": "s"}

#: Other keys of a unit, and what is said for them.
OTHERS = {"seconds": ("time", "s"), "share": ("share", "share")}

#: Suffix of the key of an interval.
INTERVAL = "_ci95"


def evidence_items(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and values: units with the values, intervals after their means."""
    pairs = (_evidence_item(key, evidence) for key in evidence)
    return [(name.replace("_", " ") if name.isidentifier() else name, text) for name, text in pairs if text]


def evidence_line(evidence: Mapping[str, Any]) -> str:
    """Return the evidence on one line."""
    return ", ".join(f"{name} {text}" for name, text in evidence_items(evidence))


def _evidence_item(key: str, evidence: Mapping[str, Any]) -> tuple[str, str]:
    """Return a name and its text; no text for an interval, which its mean includes."""
    number = evidence[key]
    ending = next((ending for ending in ENDINGS if key.endswith(ending)), "")
    name, unit = OTHERS.get(key, (key.removesuffix(ending), ENDINGS.get(ending)))
    if key.endswith(INTERVAL):
        return name, ""
    if unit is None or isinstance(number, (str, list, tuple)):
        return key, _text(number)
    ends = evidence.get(name + INTERVAL)
    if ends is None or number is None:
        return name, value(number, unit)
    low, high = ends
    middle, between = interval(number, low, high, unit)
    return name, f"{middle} ({between})"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return "–".join(map(_text, value))
    return f"{value:,}" if isinstance(value, int) else NOTHING if value is None else str(value)
