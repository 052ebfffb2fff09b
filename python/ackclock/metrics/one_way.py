"""One-way delay of data from end to end: RFC 7679's delay of the packets of each flow.

From the moment at which the sender's TCP or UDP sends a packet, this very copy of it, to that of its arrival: queues,
transmissions and propagation. The packet engine measures it where a scenario gives `[record] delays = true`; for a run
of the real kernel or a network that was captured, two captures that are joined (`ackclock capture --join`) tell it.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import RunView

#: The series of all flows, and of each.
SERIES = "delays"


def one_way_delay_mean_s(view: RunView) -> float | None:
    """Mean one-way delay of the data packets that arrived in the measured part, all flows' packets alike.

    From their sending to their arrival, each copy of a packet that arrives counted. Null where it was not recorded.
    Source: RFC 7679; Le 2011, figures 5.7 to 5.10 (end-to-end delay).
    """
    result = series(view)
    packets = int(result["packets"].sum())
    return float((result["packets"] * result["delay_mean_s"]).sum()) / packets if packets else None


def one_way_delay_p95_s(view: RunView) -> float | None:
    """95th percentile of the one-way delay, of each flow's packets; the mean over the flows that got any.

    Null where it was not recorded, or of a part of a run. Within 0.8 %. Source: RFC 7679.
    """
    return view.rows("flows").mean("measured_delay_p95_s")


def one_way_delay_flow_s(view: RunView) -> list[float] | None:
    """Mean one-way delay of each flow's data packets that arrived in the measured part; null if a flow got none.

    Source: RFC 7679; Le 2011, figures 5.7 to 5.10.
    """
    return _of_flows(view, "measured_delay_mean_s")


def one_way_delay_flow_p95_s(view: RunView) -> list[float] | None:
    """95th percentile of the same of each flow, within 0.8 %; null if a flow got none. Source: RFC 7679."""
    return _of_flows(view, "measured_delay_p95_s")


def series(view: RunView) -> pl.DataFrame:
    """Return the delays of each flow over time in the measured part: a row for each interval with arrivals.

    `time_s` (the interval's end), `flow`, `packets`, `delay_min_s`, `delay_mean_s`, `delay_max_s`. Of joined captures,
    of the directions that carry data.
    """
    columns = ("time_s", "flow", "packets", "delay_min_s", "delay_mean_s", "delay_max_s")
    rows = view.measured(SERIES).frame().select(columns)
    return rows.filter(pl.col("flow").is_in(view.rows("flows")["flow"])).sort("flow", "time_s")


def _of_flows(view: RunView, column: str) -> list[float] | None:
    values = view.rows("flows")[column]
    return [float(value) for value in values] if values.size and not np.isnan(values).any() else None


METRICS = (
    Metric("one_way_delay_mean_s", "s", "Mean one-way delay", one_way_delay_mean_s),
    Metric("one_way_delay_p95_s", "s", "95th percentile of the one-way delay", one_way_delay_p95_s),
    Metric("one_way_delay_flow_s", "s", "Mean one-way delay of each flow", one_way_delay_flow_s, per_flow=True),
    Metric(
        "one_way_delay_flow_p95_s",
        "s",
        "95th percentile of each flow's one-way delay",
        one_way_delay_flow_p95_s,
        per_flow=True,
    ),
)
