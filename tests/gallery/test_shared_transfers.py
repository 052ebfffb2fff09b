"""The measures of short transfers, on tables made by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import synthetic

from ackclock import metrics
from ackclock.dataset.tables import EVENT_KINDS
from ackclock.metrics import RunView
from ackclock.reproductions.transfers import completion_of, line_rtt, retransmission_time

MSS = 1448


def view(events: list[tuple[float, int, str, float]] = (), **tables: dict) -> RunView:
    """Three flows of 1, 2 and 7 segments that take 1, 3 and 8 s, and the given events (time, flow, kind, value)."""
    flows = synthetic.flows(
        3,
        size_bytes=np.array([1, 2, 7], np.uint64) * MSS,
        fct_s=np.array([1.0, 3.0, 8.0]),
        start_s=np.array([10.0, 20.0, 30.0]),
        base_rtt_s=np.array([0.05, 0.04, 0.06]),
    )
    rows = {
        "flows": flows,
        "events": {
            "time_s": np.array([time_s for time_s, *_ in events]),
            "flow": np.array([flow for _, flow, *_ in events], np.uint32),
            "link": np.zeros(len(events), np.uint32),
            "kind": np.array([EVENT_KINDS.index(kind) for *_, kind, _ in events], np.uint8),
            "value": np.array([value for *_, value in events], float),
        },
        **tables,
    }
    plan = synthetic.plan(rate_bps=1e7, duration_s=100, groups=[{"tcp": {"mss_bytes": MSS}}])
    return next(metrics.runs(synthetic.dataset(plan, rows)))


def test_completion_is_that_of_the_named_sizes() -> None:
    found = view()
    assert completion_of(most=1)(found) == 1
    assert completion_of(least=2, most=2)(found) == 3
    assert completion_of(most=6)(found) == 2
    assert completion_of(least=100, most=200)(found) is None


def test_a_lost_segment_waits_from_its_drop_to_its_retransmission() -> None:
    """Segment 4 of flow 0 waits 0.5 s, and 1.5 s when it is lost again: 1 s. Segment 4 of flow 1 waits 3 s."""
    events = [
        (11.0, 0, "drop", 4),
        (11.1, 0, "drop", 5),
        (11.5, 0, "retransmission", 4),
        (12.0, 0, "drop", 4),
        (13.5, 0, "retransmission", 4),
        (21.0, 1, "drop", 4),
        (24.0, 1, "retransmission", 4),
    ]
    assert retransmission_time(view(events)) == pytest.approx((1 + 3) / 2)


def test_a_retransmission_of_what_was_not_lost_has_no_wait() -> None:
    assert retransmission_time(view([(11.5, 0, "retransmission", 4)])) is None


def test_the_mean_wait_is_the_same_whatever_number_of_threads_has_added_it_up() -> None:
    """A sum's last digit is its order's: here that of the flows, not one in which threads found them."""
    waits_s = np.random.default_rng(1).exponential(1.0, 5000)
    drops = [(11.0, flow, "drop", 4) for flow in range(waits_s.size)]
    events = [*drops, *((11.0 + wait_s, flow, "retransmission", 4) for flow, wait_s in enumerate(waits_s))]
    flows = {"flows": synthetic.flows(waits_s.size)}
    by_flow = pl.Series((11.0 + waits_s) - 11.0)
    assert {retransmission_time(view(sorted(events), **flows)) for _ in range(20)} == {by_flow.mean()}


def test_a_syn_waits_from_its_last_transmission() -> None:
    """Flow 1 starts at 20 s: waits of 3 and 6 s."""
    events = [(23.0, 1, "syn_retransmission", 0), (29.0, 1, "syn_retransmission", 0)]
    assert retransmission_time(view(events)) == pytest.approx(4.5)


def test_the_rtt_of_a_line_is_the_way_both_waits_and_a_transmission() -> None:
    links = {
        "link": np.array([0, 1], np.uint32),
        "name": ["down", "up"],
        "bottleneck": [True, True],
        "rate_bps": [1e7, 1e6],
        "sojourn_mean_s": [0.1, 0.02],
    }
    assert line_rtt(view(links=links)) == pytest.approx(0.04 + 0.12 + 8 * 1514 / 1e7)
