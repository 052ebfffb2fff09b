"""What captures tell, in a sentence or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ackclock.views import numbers

#: Vantage → where that is.
PLACES = {"sender": "at the sender", "receiver": "at the receiver", "middle": "on the way"}


#: What is summed over all connections, of which the answers list the largest only.
COUNTED = ("delivered_bytes", "lost")


def sentence(answers: Mapping[str, Any], data_bytes: int, lost: int) -> str:
    """How much of what was seen, from where; losses; and what limits the path."""
    where = f", seen {PLACES[answers['vantage']]}" if answers["vantage"] else ""
    data = numbers.value(data_bytes, "bytes") if data_bytes else "no data"
    seen = f"{_counted(answers['connections'], 'connection')} with {data}{where}"
    parts = [seen, f"{_counted(lost, 'segment')} lost"]
    if answers["capture_loss"]["packets"]:
        parts.append(f"{_counted(answers['capture_loss']['packets'], 'more')} missed by the capture")
    return "; ".join(parts) + "." + _path(answers["path"], answers["flows"])


def _path(path: Mapping[str, Any], flows: Sequence[Mapping[str, Any]]) -> str:
    if path["limiter"] in ("policer", "shaper"):
        depth = f", {numbers.value(path['depth_bytes'], 'bytes')} deep" if path["depth_bytes"] else ""
        return f" A {path['limiter']} of {numbers.value(path['rate_bps'], 'bit/s')}{depth}."
    if path["limiter"] == "queue":
        rate = numbers.value(path["rate_bps"], "bit/s")
        if _alone_and_shares(flows):
            return f" A queue before a full link that others share; this flow got {rate} of it."
        return f" A queue before a link of {rate}."
    return ""


def _alone_and_shares(flows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one flow is seen, and mostly shares a link with what is not: nobody knows the rate of that."""
    limits = [flow["limited"] or {} for flow in flows if flow["bytes"]]
    return len(limits) == 1 and limits[0].get("shared_bottleneck", 0.0) > 1 / 2


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 or what == "more" else f"{count:,} {what}s"
