"""Analysis of captures without tables: sums, and the connections with the most data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ackclock import _core
from ackclock.capture import json_output, summary_text
from ackclock.capture.congestion import Ranking

if TYPE_CHECKING:
    from ackclock.capture.clock import ClockLog

#: Segments that are analysed before the rows found are put away; and somebody may want it to end.
AT_A_TIME = 50_000

#: Columns of the analysis of which a row of the table `captured` is made here.
ENDS = ("client_port", "server_port")
COLUMNS = (*(name for name in json_output.COLUMNS if name not in ("connection", "sender")), *ENDS)


def summarise_capture(
    capture: _core.Capture, rankings: Mapping[int, Ranking], log: ClockLog | None = None
) -> json_output.JsonObject:
    """Return the analysis of a capture of which all rows were taken, see `json_output`.

    A stall that coincides with a gap in the log of the host's clock has its class.
    """
    seen = capture.seen()
    stalls = capture.largest_stalls()
    told = {
        "files": [_file(file) for file in capture.files()],
        "vantage": json_output.vantage(seen),
        "packets": capture.segments,
        "connections": capture.connections,
        "path": capture.path() or dict(json_output.NO_PATH),
        "capture_loss": json_output.capture_loss(seen),
        "flows": json_output.of_flows(
            map(_direction, capture.largest(COLUMNS)),
            stalls if log is None else _logged(stalls, log, capture),
            rankings,
        ),
    }
    return {
        **told,
        "summary": summary_text.sentence(told, *(sum(row[what] for row in seen) for what in summary_text.COUNTED)),
    }


def _direction(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the analysis in the form of the table `captured`."""
    flow = row["flow"]
    return {
        **row,
        "connection": flow // 2,
        "sender": ("client", "server")[flow % 2],
        "client": end(row["client"], row["client_port"]),
        "server": end(row["server"], row["server_port"]),
        "vantage": _core.CAPTURE_VANTAGES[row["vantage"]],
    }


def end(address: str, port: int) -> str:
    """Return address and port: `192.0.2.1:443`, `[2001:db8::1]:443`."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _logged(stalls: Sequence[dict[str, Any]], log: ClockLog, capture: _core.Capture) -> list[dict[str, Any]]:
    """Give the stalls that coincide with gaps in the clock log their class."""
    import numpy as np

    from ackclock.dataset.tables import CLOCK_GAPS

    begin_s = 1e-9 * (capture.origin_ns or 0) + np.array([stall["time_s"] for stall in stalls])
    which, classes, _ = log.explains(begin_s, np.array([stall["duration_s"] for stall in stalls]))
    told = list(stalls)
    for place, gap in zip(which, classes, strict=True):
        told[place] = {**told[place], "class": CLOCK_GAPS[gap]}
    return told


def _file(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of a file that are not zero."""
    always = ("path", "packets", "segments", "note")
    return {key: value for key, value in file.items() if key in always or (value and key != "refused")}
