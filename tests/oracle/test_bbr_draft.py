"""The test cases of draft-ietf-ccwg-bbr (appendix "BBR Example Test Cases", working copy of 2026) on our BBRv3.

Each test has the title of its case. Four cases are tried ACK by ACK in `crates/ackclock-congestion/src/bbr3/tests.rs`:
those that pause the application in mid-connection, which no scenario does, and the two of spurious losses.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from oracle.bbr_draft import PAYLOAD, Row, entry, follow, states, stay  # type: ignore[import-not-found]

MBIT = 1e6
SHALLOW = '{ discipline = "pfifo", limit = "0.3bdp" }'


def changed(at_s: float, **values: str) -> str:
    """A change of the bottleneck."""
    settings = ", ".join(f"{key} = {value}" for key, value in values.items())
    return f'changes = [{{ link = "bottleneck", at = "{at_s}s", {settings} }}]'


def rounds_in(rows: list[Row]) -> float:
    return rows[-1]["round_count"] - rows[0]["round_count"]


@pytest.fixture(scope="module")
def steady() -> list[Row]:
    """An undisturbed flow."""
    return follow()


def test_exiting_startup_on_bandwidth_plateau(steady: list[Row]) -> None:
    drain = entry(steady, "DRAIN")
    assert drain["max_bw_bps"] == pytest.approx(20 * MBIT * PAYLOAD, rel=0.02)
    assert drain["full_bw_count"] == 3
    assert drain["full_bw_now"] == drain["full_bw_reached"] == 1
    assert states(steady)[:2] == ["STARTUP", "DRAIN"]


def test_exiting_startup_on_loss_when_application_limited() -> None:
    rows = follow("3s", network="loss = { probability = 0.2 }", flow='application_rate = "4Mbit"')
    drain = entry(rows, "DRAIN")
    assert states(rows)[:2] == ["STARTUP", "DRAIN"]
    assert drain["full_bw_reached"] == 1
    assert drain["full_bw_count"] < 3, "no plateau"
    assert drain["inflight_longterm"] < math.inf, "the loss has set the bound"


def test_exiting_drain_based_on_inflight(steady: list[Row]) -> None:
    drain = stay(steady, "DRAIN")
    assert all(row["pacing_gain"] == 0.5 for row in drain[:-1])
    assert rounds_in(drain) <= 3
    assert drain[-1].state in ("PROBE_DOWN", "PROBE_CRUISE")


def test_exiting_drain_based_on_time() -> None:
    """At a tenth of the bandwidth: at nine tenths, which the draft has, half the rate drains the queue in time."""
    at_s = entry(follow("1s"), "DRAIN").time_s
    rows = follow("4s", network=changed(at_s, rate='"2Mbit"'))
    drain = stay(rows, "DRAIN")
    assert drain[-1]["round_count"] - drain[-1]["drain_start_round"] > 3
    assert drain[-1].state == "PROBE_DOWN"


def test_exiting_probe_up_on_bandwidth_plateau(steady: list[Row]) -> None:
    probe = stay(steady, "PROBE_UP")
    assert probe[-1].state == "PROBE_DOWN"
    assert probe[-1]["full_bw_count"] == 3
    assert probe[-1]["full_bw_now"] == 1
    assert rounds_in(probe) >= 3


def test_exiting_probe_up_on_loss_when_application_limited(steady: list[Row]) -> None:
    """The application writes less than the path takes; its Startup ends by losses, which then go on."""
    rows = follow("12s", network="loss = { probability = 0.2 }", flow='application_rate = "4Mbit"')
    probes = [stay(rows, "PROBE_UP", number) for number in range(states(rows)[:-1].count("PROBE_UP") - 1)]
    by_loss = [probe for probe in probes if probe[-1].state == "PROBE_DOWN" and probe[-1]["full_bw_now"] == 0]
    assert by_loss
    assert all(probe[-1]["inflight_longterm"] < math.inf for probe in by_loss)


def test_never_exiting_startup_when_application_limited_with_no_loss() -> None:
    rows = follow("30s", flow='application_rate = "4Mbit"', step_s=0.01)
    assert set(states(rows)) == {"STARTUP", "PROBE_RTT"}
    assert rows[-1]["full_bw_reached"] == 0


def test_exiting_probe_down_on_inflight(steady: list[Row]) -> None:
    down = stay(steady, "PROBE_DOWN")
    assert all(row["pacing_gain"] == 0.9 for row in down[:-1])
    assert down[-1].state == "PROBE_CRUISE"


def test_exiting_probe_down_after_max_time(steady: list[Row]) -> None:
    """The second time in PROBE_DOWN: a PROBE_RTT interrupts the first."""
    at_s = entry(steady, "PROBE_DOWN", 1).time_s
    down = stay(follow("12s", network=changed(at_s, rate='"18Mbit"')), "PROBE_DOWN", 1)
    assert down[0].time_s == pytest.approx(at_s, abs=2e-3)
    assert 2 <= down[-1].time_s - down[0].time_s <= 3
    assert down[-1].state == "PROBE_REFILL"


def test_entering_and_exiting_probe_rtt(steady: list[Row]) -> None:
    dip = stay(steady, "PROBE_RTT")
    assert dip[0].time_s >= 5
    assert dip[0]["cwnd_gain"] == 0.5
    assert dip[-1].time_s - dip[0].time_s >= 0.2
    assert rounds_in(dip) >= 1
    assert dip[-1].state in ("PROBE_DOWN", "PROBE_CRUISE")


def aggregating(place: Path, batch: int, every_ms: int) -> str:
    """A link that delivers batches: a mahimahi trace of one period."""
    (place / "batches").write_text(f"{every_ms}\n" * batch)
    return '{ trace = "batches" }'


def test_achieving_expected_startup_bandwidth_on_a_link_with_aggregation(tmp_path: Path) -> None:
    rate_bps = 40 * 1514 * 8 / 20e-3
    rows = follow("3s", rate=aggregating(tmp_path, 40, 20), place=tmp_path)
    drain = entry(rows, "DRAIN")
    assert drain["extra_acked"] > 10
    assert drain["max_bw_bps"] >= rate_bps * PAYLOAD / 2


def test_achieving_expected_cruise_bandwidth_on_a_link_with_aggregation(tmp_path: Path) -> None:
    rate_bps = 40 * 1514 * 8 / 20e-3
    rows = follow("8s", rate=aggregating(tmp_path, 40, 20), place=tmp_path)
    cruise = stay(rows, "PROBE_CRUISE", 1)
    assert all(row["extra_acked"] > 10 for row in cruise)
    assert cruise[-1]["max_bw_bps"] >= rate_bps * PAYLOAD


def test_correctly_managing_sub_packet_bdps() -> None:
    rows = follow("30s", rate="100kbit", queue='{ discipline = "pfifo", limit = "20p" }', step_s=0.01)
    late = [row for row in rows if row.time_s > 15]
    assert any(row.state.startswith("PROBE_") for row in late)
    assert late[-1]["max_bw_bps"] == pytest.approx(0.1 * MBIT * PAYLOAD, rel=0.02)


def test_increasing_bandwidth_10x_and_ensuring_full_bandwidth_is_reached() -> None:
    rows = follow("20s", rate="10Mbit", network=changed(4, rate='"100Mbit"'), step_s=0.01)
    assert rows[-1]["max_bw_bps"] == pytest.approx(100 * MBIT * PAYLOAD, rel=0.05)


def test_decreasing_bandwidth_10x_and_ensuring_max_bandwidth_adapts_down() -> None:
    rows = follow("40s", rate="100Mbit", queue=SHALLOW, network=changed(4, rate='"10Mbit"'), step_s=0.01)
    soon = [row for row in rows if 4 < row.time_s < 6]
    assert min(row["bw_shortterm_bps"] for row in soon) < 70 * MBIT
    assert rows[-1]["max_bw_bps"] == pytest.approx(10 * MBIT * PAYLOAD, rel=0.05)


def test_handling_token_bucket_policers() -> None:
    policer = '{ discipline = "tbf", rate = "10Mbit", burst = "30KB", limit = "3KB" }'
    rows = follow("30s", queue=policer)
    probing = [row for row in rows if row.state.startswith("PROBE_")]
    assert any(row["bw_shortterm_bps"] < math.inf for row in probing)
    assert any(row["inflight_shortterm"] < math.inf for row in probing)
    assert probing[-1]["inflight_longterm"] < math.inf


def test_entering_and_exiting_probe_rtt_during_startup() -> None:
    rows = follow("8s", flow='application_rate = "4Mbit"')
    assert states(rows) == ["STARTUP", "PROBE_RTT", "STARTUP"]


def test_handling_loss_during_probe_up_after_inflight_longterm_is_set() -> None:
    policer = '{ discipline = "tbf", rate = "10Mbit", burst = "30KB", limit = "3KB" }'
    rows = follow("30s", queue=policer)
    probes = [stay(rows, "PROBE_UP", number) for number in range(1, states(rows)[:-1].count("PROBE_UP") - 1)]
    cut = [probe for probe in probes if probe[-1]["inflight_longterm"] < probe[0]["inflight_longterm"]]
    assert cut
    for probe in cut:
        assert probe[-1].state == "PROBE_DOWN"
        assert probe[-1]["inflight_longterm"] >= 0.7 * probe[0]["inflight_longterm"] - 1
