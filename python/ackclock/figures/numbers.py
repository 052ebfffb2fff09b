"""Numbers for people: a scaled unit, and as many digits as mean something."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

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


def engine(manifest: Mapping[str, Any]) -> str:
    """Return the engine of a result, with its model if it has several: `theory engine (pendulum)`.

    Nothing of a result that no engine made.
    """
    name, model = manifest.get("engine"), manifest.get("model")
    return (f"{name} engine" if name else "") + (f" ({model})" if model else "")


def value(number: float | None, unit: str, digits: int = 3) -> str:
    """Return `95.7 Mb/s`, `84.4 ms`, `99.4 %`, `0.944`; `–` for null. At least `digits` significant digits."""
    if number is None:
        return NOTHING
    factor, name = scale(number, unit)
    whole = unit in COUNTED and factor == 1 and number == round(number)
    return _joined(_fixed(number / factor, 0 if whole else _decimals(number / factor, digits)), name)


def block(size_bytes: int) -> str:
    """Return a disk's block size, a power of two: `64 KiB`."""
    return f"{size_bytes >> 10} KiB" if size_bytes < 1 << 20 else f"{size_bytes >> 20} MiB"


def interval(mean: float | None, low: float | None, high: float | None, unit: str) -> tuple[str, str]:
    """Return a mean and its interval in the same unit and digits: (`95.66 Mb/s`, `95.61 – 95.71`)."""
    if mean is None or low is None or high is None:
        return value(mean, unit), NOTHING
    factor, name = scale(mean, unit)
    middle, half = mean / factor, (high - low) / 2 / factor
    decimals = max(_decimals(middle, 3), min(_decimals(half, 1), _decimals(middle, 3) + 1) if half > 0 else 0)
    texts = [_fixed(number / factor, decimals) for number in (low, high)]
    return _joined(_fixed(middle, decimals), name), f"{texts[0]} – {texts[1]}"


def estimate(mean: float | None, low: float | None, high: float | None, unit: str) -> str:
    """Return `95.66 ± 0.05 Mb/s`: half the interval, the longer half where it was cut; without an interval the mean."""
    if mean is None or low is None or high is None:
        return value(mean, unit)
    factor, name = scale(mean, unit)
    middle, half = mean / factor, max(mean - low, high - mean) / factor
    decimals = max(_decimals(middle, 3), min(_decimals(half, 1), _decimals(middle, 3) + 1))
    return _joined(f"{_fixed(middle, decimals)} ± {_fixed(half, decimals)}", name)


def signed(number: float | None, unit: str, half: float | None = None) -> str:
    """Return a difference with its sign, and half the width of its interval if any: `+1.2 ± 0.3 ms`."""
    if number is None:
        return NOTHING
    greatest = max(abs(number), half or 0.0)
    factor, name = scale(greatest, unit)
    decimals = _decimals(greatest / factor, 3)
    text = _fixed(number / factor, decimals)
    sign = "+" if number > 0 and text.strip("0.") else ""
    return _joined(sign + text + ("" if half is None else f" ± {_fixed(half / factor, decimals)}"), name)


def scale(number: float, unit: str) -> tuple[float, str]:
    """Return the divisor and the name of the unit that suits a number."""
    steps = SCALES.get(unit, ((1.0, ""),))
    for factor, name in steps:
        if abs(number) >= factor:
            return factor, name
    return next((step for step in steps if step[0] == 1), steps[0]) if number == 0 else steps[-1]


def _decimals(number: float, digits: int) -> int:
    """Return the decimals that give a number `digits` significant digits; integers up to 99,999 are not cut."""
    if number == 0 or not math.isfinite(number):
        return 0
    return max(0, min(9, digits - 1 - math.floor(math.log10(abs(number)))))


def _fixed(number: float, decimals: int) -> str:
    text = f"{number:,.{decimals}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.lstrip("-")


def _joined(text: str, name: str) -> str:
    return f"{text} {name}" if name else text


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
