"""Summary of a capture in a sentence or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ackclock.figures import numbers

#: Vantage → where that is.
PLACES = {"sender": "at the sender", "receiver": "at the receiver", "middle": "on the way"}


#: What is summed over all connections, of which the analysis list the largest only.
COUNTED = ("delivered_bytes", "lost")


def sentence(analysis: Mapping[str, Any], data_bytes: int, lost: int) -> str:
    """Return how much was captured, at which vantage point, what was lost, and what limits the path."""
    if not analysis["connections"]:
        return _no_connection(analysis["files"])
    where = f", seen {PLACES[analysis['vantage']]}" if analysis["vantage"] else ""
    data = numbers.value(data_bytes, "bytes") if data_bytes else "no data"
    seen = f"{_counted(analysis['connections'], 'connection')} with {data}{where}"
    parts = [seen, f"{_counted(lost, 'segment')} lost"]
    if analysis["capture_loss"]["packets"]:
        parts.append(f"{_counted(analysis['capture_loss']['packets'], 'segment')} missed by the capture")
    return "; ".join(parts) + "." + _path(analysis["path"], analysis["flows"])


def _no_connection(files: Sequence[Mapping[str, Any]]) -> str:
    packets = sum(file["packets"] for file in files)
    others = sum(file.get("not_tcp", 0) for file in files)
    if packets and others == packets:
        return f"No TCP among {_counted(packets, 'packet')}."
    return f"No connection among {_counted(packets, 'packet')}."


def _path(path: Mapping[str, Any], flows: Sequence[Mapping[str, Any]]) -> str:
    if path["limiter"] in ("policer", "shaper"):
        depth = f", {depth_of(path, ' deep')}" if path["depth_bytes"] else ""
        return f" A {path['limiter']} of {rate_of(path)}{depth}."
    if path["limiter"] == "queue":
        rate = numbers.value(path["rate_bps"], "bit/s")
        if _is_single_and_shared(flows):
            return f" A queue before a full link that others share; this flow got {rate} of it."
        return f" A queue before a link of {rate}."
    return ""


#: An interval whose ends are further apart than this ratio is told instead of the value.
WIDE = 1.5


def rate_of(path: Mapping[str, Any]) -> str:
    """Return the limiter's rate, as a range if it is uncertain."""
    low, high = path["rate_ci95"] or (path["rate_bps"], path["rate_bps"])
    if high > WIDE * low:
        return f"{numbers.value(low, 'bit/s')} to {numbers.value(high, 'bit/s')}"
    return numbers.value(path["rate_bps"], "bit/s")


def depth_of(path: Mapping[str, Any], word: str = "") -> str:
    """Return the limiter's depth with a suffix; "or more" if its bucket may have been partly empty at first."""
    or_more = ", or more if it was not full at first" if path.get("depth_at_least") else ""
    return numbers.value(path["depth_bytes"], "bytes") + word + or_more


def _is_single_and_shared(flows: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if one flow is captured that mostly shares its link, so that the link's rate is unknown."""
    limits = [flow["limited"] or {} for flow in flows if flow["bytes"]]
    return len(limits) == 1 and limits[0].get("shared_bottleneck", 0.0) > 1 / 2


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
