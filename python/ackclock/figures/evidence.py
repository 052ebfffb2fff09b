"""Evidence of a finding in readable form: `rate 8.02 Mb/s (8.01 – 8.03)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ackclock.figures import numbers

#: How a key ends → the unit that it names.
ENDINGS = {"_bytes_s": "byte/s", "_bps": "bit/s", "_bytes": "bytes", "_s": "s"}

#: Other keys of a unit, and what is said for them.
OTHERS = {"seconds": ("time", "s"), "share": ("share", "share")}

#: How the key of an interval's ends goes on behind the name of what lies between.
INTERVAL = "_ci95"


def figures(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and values: units with the values, intervals after their means."""
    pairs = (_figure(key, evidence) for key in evidence)
    return [(name.replace("_", " ") if name.isidentifier() else name, text) for name, text in pairs if text]


def line(evidence: Mapping[str, Any]) -> str:
    """Return the evidence on one line."""
    return ", ".join(f"{name} {text}" for name, text in figures(evidence))


def _figure(key: str, evidence: Mapping[str, Any]) -> tuple[str, str]:
    """Return a name and its text; no text for an interval, which its mean includes."""
    value = evidence[key]
    ending = next((ending for ending in ENDINGS if key.endswith(ending)), "")
    name, unit = OTHERS.get(key, (key.removesuffix(ending), ENDINGS.get(ending)))
    if key.endswith(INTERVAL):
        return name, ""
    if unit is None or isinstance(value, (str, list, tuple)):
        return key, _text(value)
    ends = evidence.get(name + INTERVAL)
    if ends is None or value is None:
        return name, numbers.value(value, unit)
    low, high = ends
    middle, between = numbers.interval(value, low, high, unit)
    return name, f"{middle} ({between})"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return "–".join(map(_text, value))
    return f"{value:,}" if isinstance(value, int) else numbers.NOTHING if value is None else str(value)
