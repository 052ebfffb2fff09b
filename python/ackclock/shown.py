"""Numbers for people: a scaled unit, and as many digits as mean something."""

from __future__ import annotations

import math

#: Unit → steps of (factor, name), greatest first.
SCALES = {
    "bit/s": ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "bit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "share": ((0.01, "%"),),
    "packets": ((1.0, "packets"),),
    "segments": ((1.0, "segments"),),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")),
}

#: Units of things that are counted: a whole number of them has no decimals.
WHOLE = ("", "packets", "bytes")

#: What stands where there is no value.
NOTHING = "–"


def value(number: float | None, unit: str, digits: int = 3) -> str:
    """`95.7 Mb/s`, `84.4 ms`, `99.4 %`, `0.944`; `–` for null. At least `digits` significant digits."""
    if number is None:
        return NOTHING
    factor, name = scale(number, unit)
    whole = unit in WHOLE and factor == 1 and number == round(number)
    return _joined(_fixed(number / factor, 0 if whole else _decimals(number / factor, digits)), name)


def interval(mean: float | None, low: float | None, high: float | None, unit: str) -> tuple[str, str]:
    """A mean and its interval in the same unit and with the same digits: (`95.66 Mb/s`, `95.61 – 95.71`)."""
    if mean is None or low is None or high is None:
        return value(mean, unit), NOTHING
    factor, name = scale(mean, unit)
    middle, half = mean / factor, (high - low) / 2 / factor
    decimals = max(_decimals(middle, 3), min(_decimals(half, 1), _decimals(middle, 3) + 1) if half > 0 else 0)
    texts = [_fixed(number / factor, decimals) for number in (low, high)]
    return _joined(_fixed(middle, decimals), name), f"{texts[0]} – {texts[1]}"


def scale(number: float, unit: str) -> tuple[float, str]:
    """What to divide by, and the unit's name for people."""
    steps = SCALES.get(unit, ((1.0, ""),))
    for factor, name in steps:
        if abs(number) >= factor:
            return factor, name
    return steps[0] if number == 0 else steps[-1]


def _decimals(number: float, digits: int) -> int:
    """Decimals that give a number `digits` significant digits; integers up to 99,999 are not cut."""
    if number == 0 or not math.isfinite(number):
        return 0
    return max(0, min(9, digits - 1 - math.floor(math.log10(abs(number)))))


def _fixed(number: float, decimals: int) -> str:
    text = f"{number:,.{decimals}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.lstrip("-")


def _joined(text: str, name: str) -> str:
    return f"{text} {name}" if name else text
