"""The packet engine against recorded runs of Linux 6.1.

`pytest tests/agreement -s` prints every run. A disagreement is to be understood as a mechanism that one of the two
lacks: `docs/agreement` names those that are known.
"""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from agreement import linux

ALL = linux.recorded("summary")
#: The runs of the congestion controls and the queue that the engine began with: held to more than the others.
REFERENCE = [run for run in ALL if run.congestion in ("reno", "cubic") and run.discipline == "pfifo"]
SINGLE = [run for run in REFERENCE if run.flows == 1]

#: The minimum share of agreeing runs of all algorithms at other settings.
SHARE = 0.85


def by_name(run: linux.Run) -> str:
    return run.run


@pytest.fixture(scope="module")
def reference():
    return [linux.simulate(run) for run in REFERENCE]


def test_the_runs_are_those_of_the_reference():
    assert (len(ALL), len(REFERENCE)) == (46, 12)


def test_goodput_and_queueing_delay_agree(reference):
    print("\n" + linux.printed(reference))
    assert sum(result.agrees for result in reference) >= linux.enough(len(reference))


def test_every_algorithm_agrees():
    """But for the runs that `test_kernel.py` sets beside a kernel whose receiver reads at once."""
    results = [linux.simulate(run) for run in ALL if run.run not in linux.READ_LATE]
    print("\n" + linux.printed(results))
    assert sum(result.agrees for result in results) >= linux.enough(len(results))


def test_retransmissions_are_of_the_same_number(reference):
    """A run is one outcome of many: a millisecond's shift of one start changes them by tens of per cent."""
    ratios = [result.retransmissions / result.run.retransmissions for result in reference]
    assert median(ratios) == pytest.approx(1.0, abs=0.1), ratios
    assert all(0.5 < ratio < 2 for ratio in ratios), ratios


def test_every_drop_is_retransmitted_exactly_one_time(reference):
    """Retransmissions beyond the drops would be spurious; Linux has 4 in 1,216 of them at most."""
    for result in reference:
        assert result.drops - 30 <= result.retransmissions <= 1.01 * result.drops + 2, result.run.run


@pytest.mark.parametrize("run", SINGLE, ids=by_name)
def test_the_window_of_a_single_flow_is_of_the_same_height_and_period(run):
    """After the start, whose outcome hangs on a few packets: mean, range and number of the window's falls."""
    times_s, recorded = linux.recorded_windows(run)
    late = times_s >= linux.WARMUP_S
    theirs, ours = recorded[late, 0], linux.simulate(run).windows_at(times_s)[late, 0]
    assert ours.mean() == pytest.approx(theirs.mean(), rel=0.04)
    assert ours.max() == pytest.approx(theirs.max(), rel=0.05)
    assert np.quantile(ours, 0.05) == pytest.approx(np.quantile(theirs, 0.05), rel=0.05)
    assert linux.falls(ours) == pytest.approx(linux.falls(theirs), rel=0.1, abs=1)


def test_shares_are_fair_where_the_receivers_read_in_time(reference):
    """Ten equal flows: Linux's own index is lower in these runs because its receivers read every 5 ms only."""
    assert all(result.jain > 0.94 for result in reference)


#: Single flows over a queue of three packets, where it counts when the send buffer is filled. CUBIC hangs on the phase
#: of the kernel's clock.
IN_THREE_PACKETS = ("reno", "bic", "highspeed", "hybla", "scalable", "vegas", "illinois", "dctcp")


@pytest.mark.parametrize("congestion", IN_THREE_PACKETS)
def test_a_single_flow_over_three_packets_loses_when_the_kernels_does(congestion):
    cell = {"rate": "10Mbit", "rtt": "10ms", "flows": 1, "congestion": congestion}
    queue = '{ discipline = "pfifo", limit = "0.3bdp" }'
    (recorded,) = linux.cells().filter(engine="linux", seed=1, queue=queue, **cell).iter_rows(named=True)
    ours = linux.cell(queue, **cell)
    assert ours["goodput_bps"] == pytest.approx(recorded["goodput_bps"], rel=0.01)
    assert ours["queue_delay_mean_s"] == pytest.approx(recorded["queue_delay_mean_s"], rel=0.07)
    assert ours["loss_rate"] == pytest.approx(recorded["loss_rate"], rel=0.02)


@pytest.mark.parametrize("rate", ["10Mbit", "100Mbit"])
@pytest.mark.parametrize("limit", ["0.1bdp", "0.3bdp", "1bdp"])
def test_hybla_over_a_long_path_loses_as_much_as_the_kernels(rate, limit):
    """Its slow start adds 255 segments an ACK there, as far as the receiver's window opens."""
    cell = {"rate": rate, "rtt": "200ms", "flows": 1, "congestion": "hybla"}
    queue = f'{{ discipline = "pfifo", limit = "{limit}" }}'
    (recorded,) = linux.cells().filter(engine="linux", seed=1, queue=queue, **cell).iter_rows(named=True)
    ours = linux.cell(queue, **cell)
    assert ours["goodput_bps"] == pytest.approx(recorded["goodput_bps"], rel=0.005)
    assert ours["queue_delay_mean_s"] == pytest.approx(recorded["queue_delay_mean_s"], rel=0.02)
    assert ours["loss_rate"] == pytest.approx(recorded["loss_rate"], rel=0.05)


#: Other rates, delays, buffers and numbers of flows, over a link that sends a packet as the engine's does.
OTHER_SETTINGS = linux.recorded("serialising")


def assert_they_agree(runs: list[linux.Run]) -> None:
    """Nine of ten within the tolerances, and the typical one much closer."""
    results = [linux.simulate(run) for run in runs]
    print("\n" + linux.printed(results))
    assert sum(result.agrees for result in results) >= linux.enough(len(results))
    assert median(abs(result.goodput_difference) for result in results) < 0.0025
    assert median(abs(result.delay_difference_s) for result in results) < 0.0006


def test_other_rates_delays_and_buffers_agree():
    assert_they_agree(OTHER_SETTINGS[::4])


@pytest.mark.oracle
def test_all_other_rates_delays_and_buffers_agree():
    assert_they_agree(OTHER_SETTINGS)


#: The other congestion controls and queue disciplines at other rates, delays and buffers, over the token bucket.
ALGORITHMS = linux.recorded("algorithms")


def test_other_settings_of_every_algorithm_agree():
    results = [linux.simulate(run) for run in ALGORITHMS]
    print("\n" + linux.printed(results))
    assert sum(result.agrees for result in results) >= linux.enough(len(results), SHARE)


@pytest.mark.parametrize("run", [run for run in ALGORITHMS if (run.congestion, run.flows) == ("dctcp", 2)], ids=by_name)
def test_two_flows_of_dctcp_share_as_unequally_as_in_linux(run):
    """Four to one or so behind a step marker, where equal shares would have an index of 1."""
    assert linux.simulate(run).jain == pytest.approx(run.jain, abs=0.07)
