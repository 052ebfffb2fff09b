"""Parts of a run, and how soon it is steady again after a change."""

import numpy as np
import polars as pl
import pytest
import synthetic

from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.metrics.dynamics import steady_from
from ackclock.metrics.throughput import rates_between_bps

PLAN = synthetic.plan(rate_bps=1e7, duration_s=90, warmup_s=10)
TIMES = np.arange(1, 901) * 0.1


def phases() -> Dataset:
    """Until 30 s one flow at 5 Mb/s, until 60 s two at 6 and 2, then one at 5; counters say something else."""
    busy = (TIMES > 30.05) & (TIMES <= 60.05)
    rates = np.column_stack([np.where(busy, 6e6, 5e6), np.where(busy, 2e6, 0.0)])
    queue = {
        "time_s": TIMES,
        "link": np.zeros(900, np.uint32),
        "utilisation": np.where(busy, 0.8, 0.5),
        "backlog_p": np.where(busy, 40.0, 0.0),
        "sojourn_s": np.where(busy, 0.05, 0.001),
        "departures_p": np.full(900, 99, np.uint64),
        "drops_p": np.where(busy, 1, 0).astype(np.uint64),
        "marks_p": np.where(busy, 20, 0).astype(np.uint64),
    }
    flows = synthetic.flows(
        2,
        start_s=[0.0, 30.0],
        fct_s=[np.nan, 30.0],
        delivered_bytes=np.array([60_000_000, 7_500_000], np.uint64),
        measured_bytes=np.array([1, 1], np.uint64),
        measured_sent_packets=np.array([7, 7], np.uint64),
        measured_retransmissions=np.array([7, 7], np.uint64),
    )
    tables = {
        "flows": flows,
        "flow_samples": synthetic.samples(TIMES, delivered_bytes=np.cumsum(rates / 80, axis=0)),
        "queue_samples": queue,
        "links": synthetic.link(arrived_p=5, dropped_p=5, lost_p=0, departed_bytes=5, sojourn_mean_s=9.0, departed_p=1),
        "events": synthetic.drops([31.0, 32.0, 70.0], [0, 1, 0]),
    }
    return synthetic.dataset(PLAN, tables)


def part(*between: float) -> dict[str, float]:
    return metrics.table(phases(), between=between)["runs"][0]["metrics"]  # type: ignore[arg-type]


def test_each_phase_has_its_own_numbers() -> None:
    """In a part the engine's counts over the whole run are nothing to go by: samples and events are."""
    light, heavy = part(10, 30), part(30, 60)
    assert light["goodput_flow_bps"] == pytest.approx([5e6])
    assert heavy["goodput_flow_bps"] == pytest.approx([6e6, 2e6])
    assert heavy["jain"] == pytest.approx(64 / 80)
    assert (light["utilisation"], heavy["utilisation"]) == (pytest.approx(0.5), pytest.approx(0.8, abs=2e-3))
    assert heavy["throughput_bps"] == pytest.approx(8e6, rel=3e-3)
    assert (light["loss_rate"], heavy["loss_rate"]) == (0, pytest.approx(0.01, rel=0.01))
    assert heavy["mark_rate"] == pytest.approx(0.2, rel=0.01)
    assert heavy["queue_delay_mean_s"] == pytest.approx(0.05, rel=0.01)
    assert (light["congestion_epochs"], heavy["congestion_epochs"]) == (0, 2)
    assert heavy["retransmission_rate"] is None
    assert metrics.epochs(phases(), between=(30, 60))["start_s"].to_list() == [31.0, 32.0]


def test_without_parts_the_counts_are_used() -> None:
    result = metrics.table(phases())["runs"][0]["metrics"]
    assert result["retransmission_rate"] == 1.0
    assert result["loss_rate"] == 1.0


def test_a_flow_without_samples_delivers_evenly() -> None:
    """10 MB from 10 to 50 s; between 40 and 60 s that is 2.5 MB, over 20 s 1 Mb/s."""
    rows = synthetic.flows(1, start_s=[10.0], fct_s=[40.0], delivered_bytes=np.array([10_000_000], np.uint64))
    result = metrics.table(synthetic.dataset(PLAN, {"flows": rows}), between=(40, 60))
    assert result["runs"][0]["metrics"]["goodput_bps"] == pytest.approx(1e6)


def test_the_last_bytes_of_a_sampled_transfer_count() -> None:
    """A transfer of 1 MB from 10 to 10.95 s whose last sample, at 10.9 s, saw half of it."""
    samples = synthetic.samples(np.array([10.9]), delivered_bytes=np.array([[500_000]]))
    rows = synthetic.flows(1, start_s=[10.0], fct_s=[0.95], delivered_bytes=np.array([1_000_000], np.uint64))
    data = synthetic.dataset(PLAN, {"flows": rows, "flow_samples": samples})
    result = metrics.table(data, between=(10, 20))
    assert result["runs"][0]["metrics"]["goodput_bps"] == pytest.approx(8e6 / 10)


@pytest.mark.parametrize("between", [(-1, 5), (5, 5), (20, 10), (10, 91)])
def test_a_part_that_is_none_is_rejected(between: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="between: found .* expected (a part of 0 s to 90 s|two ascending times)"):
        metrics.table(phases(), between=between)


def test_steady_from_the_first_value_on_that_stays_within() -> None:
    """The level of [0, 2, 9, 10, 10, 10] is 10; of a ramp that goes on there is none."""
    assert steady_from(np.array([0.0, 2.0, 9.0, 10.0, 10.0, 10.0]), 0.1) == 2
    assert steady_from(np.array([0.0, 2.0, 8.9, 10.0, 10.0, 10.0]), 0.1) == 3
    assert steady_from(np.full(6, 3.0), 0.1) == 0
    assert steady_from(np.zeros(6), 0.1) == 0
    assert steady_from(np.array([10.0, 10.0, 10.0, 10.0, 10.0, 20.0]), 0.1) is None
    assert steady_from(np.full(4, np.nan), 0.1) is None


def test_a_flow_that_is_not_present_for_a_complete_stretch_has_no_rate() -> None:
    """The second flow is there from 30 to 60 s."""
    rates = rates_between_bps(next(metrics.runs(phases())), np.array([20.0, 29.0, 31.0, 40.0, 60.0, 70.0]))
    np.testing.assert_allclose(rates[:, 1], [np.nan, np.nan, 2e6, 2e6, np.nan])
    np.testing.assert_allclose(rates[:, 0], [5e6, 5.5e6, 6e6, 6e6, 5e6], rtol=1e-2)


def test_responsiveness_at_the_phases_of_a_timeline() -> None:
    """Stretches of 2 s (20 RTTs of 0.1 s): the queue needs 10 s to fill, everything else changes at once.

    The queue's mean from 8 to 10 s after the change is 36.2 of 40 packets: within 10 %, and not within 5 %.
    """
    data = phases()
    ramp = pl.when(pl.col("time_s").is_between(30, 40)).then(4 * (pl.col("time_s") - 30)).otherwise("backlog_p")
    queue = data.queue_samples.with_columns(ramp.alias("backlog_p"))
    columns = {name: queue[name].to_numpy() for name in queue.columns if name != "run"}
    tables = {"queue_samples": columns}
    for name in ("flows", "flow_samples"):
        frame = data.frame(name)
        tables[name] = {column: frame[column].to_list() for column in frame.columns if column != "run"}
    tables["links"] = synthetic.link()
    made = synthetic.dataset(PLAN, tables)
    result = metrics.responsiveness_at(made, [10, 30, 60])
    assert result["at_s"].to_list() == [10, 30, 60]
    assert result["until_s"].to_list() == [30, 60, 90]
    assert result["utilisation_s"].to_list() == [0, 0, 0]
    assert result["jain_s"].to_list() == [0, 0, 0]
    assert result["queue_s"].to_list() == [0, pytest.approx(8), 0]
    assert metrics.responsiveness_at(made, [30, 60], within=0.05)["queue_s"].to_list() == [pytest.approx(10), 0]


@pytest.mark.parametrize("instants", [[], [30, 20], [-1, 5], [90]])
def test_instants_that_are_none_are_rejected(instants: list[float]) -> None:
    with pytest.raises(InputError, match="instants: found .* expected ascending times from 0 s to 90 s"):
        metrics.responsiveness_at(phases(), instants)
