"""The measures of total windows and of goodput that entries share, on tables made by hand."""

from __future__ import annotations

import numpy as np
import pytest
import synthetic
from small_networks import dumbbell

import ackclock
from ackclock import metrics
from ackclock.metrics import RunView
from ackclock.reproductions.measures import mean_window_bdp, peak_bdp, served_bps

#: 12 Mb/s and 0.1 s: a BDP of 100 packets of 1500 bytes.
RATE_BPS, RTT_S = 12e6, 0.1


def view(windows: np.ndarray, drops_s: list[float], warmup_s: float = 0.0) -> RunView:
    """Two flows with these windows (T × 2), a sample each second from 1 s on, and drops of the first at these times."""
    flow = {"group": 0, "base_rtt_s": RTT_S}
    plan = synthetic.plan(rate_bps=RATE_BPS, duration_s=100, warmup_s=warmup_s, flows=[flow, flow])
    times_s = np.arange(1.0, 1.0 + len(windows))
    tables = {
        "flows": synthetic.flows(2, base_rtt_s=np.full(2, RTT_S)),
        "flow_samples": synthetic.samples(times_s, cwnd=windows, srtt_s=np.full(windows.shape, RTT_S)),
        "events": synthetic.drops(drops_s, [0] * len(drops_s)),
    }
    return next(metrics.runs(synthetic.dataset(plan, tables)))


def test_the_mean_window_is_that_of_the_measured_part_in_bdps() -> None:
    """Totals of 100, 200, 300 and 400 segments; a warm-up of 2 s leaves out the first two."""
    windows = np.outer([1.0, 2.0, 3.0, 4.0], [60.0, 40.0])
    assert mean_window_bdp(view(windows, [])) == pytest.approx(2.5)
    assert mean_window_bdp(view(windows, [], warmup_s=2.0)) == pytest.approx(3.5)


def test_the_peak_is_the_mean_over_the_epochs_in_bdps() -> None:
    """Epochs at 1.95 and 3.95 s: the samples within a round trip of them have totals of 200 and 400 segments."""
    windows = np.outer([1.0, 2.0, 3.0, 4.0], [60.0, 40.0])
    assert peak_bdp(view(windows, [1.95, 3.95])) == pytest.approx(3.0)
    assert peak_bdp(view(windows, [])) is None


#: One flow that fills 1 Mb/s, and after slow start sends again much that had arrived.
FULL = f"""
duration = "20s"
warmup = "5s"
tcp = {{ stack = "ns2", mss = "1460B", rtt_sampling = "each_ack", rtt_tick = "0ms", impatient = false }}
flows = [{{ congestion = "reno" }}]

{dumbbell("1Mbit", "50ms", "100p")}
frame_overhead = "0B"
"""


def test_what_is_served_is_the_payload_of_a_full_link_new_or_repeated() -> None:
    """1460 of 1500 bytes of each packet; what is repeated is no goodput."""
    (found,) = metrics.runs(ackclock.run(ackclock.loads(FULL), "packet", jobs=1))
    assert served_bps(found) == pytest.approx(1e6 * 1460 / 1500, rel=1e-3)
    assert served_bps(found) > 1.1 * metrics.value(found, "goodput_bps")
