"""The judge of BBRv3 against logs of the engine's BBRv3 in a QUIC stack, as it is and with seeded mistakes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import ackclock as ac
from ackclock import judge, qlog
from ackclock.judge import Judgement
from ackclock.scenario import planning

#: Link, queue in BDP and number of flows: the first is the one in which the tolerances were chosen.
WORLDS = {
    "one BDP": ('rate = "10Mbit"\nrtt = "40ms"', 1, 1),
    "loss": ('rate = "12Mbit"\nrtt = "30ms"\nloss = { probability = 0.01 }', 1, 1),
    "three flows": ('rate = "30Mbit"\nrtt = "30ms"', 1.5, 3),
}

#: Less fits into this path than the offload budget.
SHORT_PATH = ('rate = "5Mbit"\nrtt = "0.5ms"', 1, 1)

#: Waits between probes end by time, since 53 rounds take longer; ProbeRTT begins after 5 and 10 s.
PROBES = {
    "probes": ('rate = "9Mbit"\nrtt = "70ms"', 1, 1),
    "probes without loss": ('rate = "9Mbit"\nrtt = "70ms"', 3, 1),
}
PROBES_S = 12

#: Parameters that the draft does not have, and the rule that they break.
MUTATIONS = {
    "a larger window": ("cwnd_gain = 4.0, up_cwnd_gain = 4.5", "inflight-bound"),
    "faster probes": ("up_gain = 2.0", "pacing"),
}

#: Parameters of probes that the draft does not have, and the rule that they break.
PROBE_MUTATIONS = {
    "a short ProbeRTT": ('probe_rtt_duration = "50ms"', "probe-rtt-length"),
    "a long ProbeRTT": ('probe_rtt_duration = "1s"', "probe-rtt-length"),
    "a large window in ProbeRTT": ("probe_rtt_cwnd_gain = 1.0", "probe-rtt"),
    "frequent ProbeRTT": ('probe_rtt_interval = "2s"', "probe-rtt-interval"),
    "long waits": ('probe_wait = "8s"', "probe-wait"),
    "a slow DOWN": ("down_gain = 0.75", "down-gain"),
    "a DOWN that drains nothing": ("down_gain = 1.0", "down-gain"),
}


@cache
def logs(world: str, parameters: str = "") -> list[str]:
    """Return the logs of the flows of a world."""
    link, limit_bdp, count = {**WORLDS, **PROBES}.get(world, SHORT_PATH)
    text = f"""
duration = "{PROBES_S if world in PROBES else 6}s"
[network]
topology = "dumbbell"
queue = {{ discipline = "pfifo", limit = "{limit_bdp}bdp" }}
{link}
[[flows]]
count = {count}
transport = "quic"
receive_window = "16MB"
controller = "engine"
congestion = {{ kind = "bbr3"{parameters and f", {parameters}"} }}
[record]
qlog = true
"""
    with TemporaryDirectory() as name:
        ac.run(planning.loads(text).plan(), seeds=[1], captures=Path(name))
        return [path.read_text(encoding="utf-8") for path in sorted(Path(name).iterdir())]


def log(world: str, parameters: str = "") -> str:
    """Return the log of the first flow of a world."""
    return logs(world, parameters)[0]


def judged(text: str) -> Judgement:
    (connection,) = qlog.connections(qlog.parse(Path("log.sqlog"), text))
    return judge.judge_connection(connection, "bbr3")


@pytest.mark.parametrize("world", WORLDS)
def test_a_clean_controller_has_no_deviation(world: str) -> None:
    for text in logs(world):
        result = judged(text)
        assert result.deviations == []
        assert result.agreed > 50 and result.verdict == "agrees"
        assert any("bounds after losses" in note for note in result.notes)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_seeded_mistake_breaks_its_rule(name: str) -> None:
    parameters, rule = MUTATIONS[name]
    found = judged(log("one BDP", parameters)).deviations
    assert {one.rule for one in found} == {rule}
    assert "draft-ietf-ccwg-bbr section 5.6" in found[0].section
    assert found[0].found > found[0].expected_high


@pytest.mark.parametrize("world", PROBES)
def test_clean_probes_have_no_deviation(world: str) -> None:
    result = judged(log(world))
    assert result.deviations == []
    assert result.agreed > 50


@pytest.mark.parametrize("name", PROBE_MUTATIONS)
def test_a_seeded_mistake_of_probes_breaks_its_rule(name: str) -> None:
    parameters, rule = PROBE_MUTATIONS[name]
    found = judged(log("probes", parameters)).deviations
    assert {one.rule for one in found} == {rule}
    assert "draft-ietf-ccwg-bbr section 5" in found[0].section
    assert not found[0].expected_low <= found[0].found <= found[0].expected_high


def test_short_waits_break_their_rule_where_probes_lose_nothing() -> None:
    found = judged(log("probes without loss", 'probe_wait = "300ms", probe_wait_spread = "100ms"')).deviations
    assert {one.rule for one in found} == {"probe-wait"}
    assert found[0].found < found[0].expected_low


def test_without_pacing_rates_no_step_of_them_is_judged() -> None:
    text = re.sub(r'"pacing_rate":\d+', '"other":0', log("probes", "down_gain = 0.75"))
    assert judged(text).deviations == []


def test_the_unit_of_pacing_rates_does_not_matter() -> None:
    text = re.sub(r'("pacing_rate":\d+)', r"\g<1>0", log("probes"))
    assert judged(text).deviations == []


def test_the_offload_budget_bounds_the_window_on_a_short_path() -> None:
    assert "inflight-bound" not in {one.rule for one in judged(log("short")).deviations}


def test_a_jump_of_the_window_deviates() -> None:
    windows = [int(size) for size in re.findall(r'"congestion_window":(\d+)', log("one BDP"))]
    text = log("one BDP").replace(f'"congestion_window":{windows[3]}', f'"congestion_window":{10 * max(windows)}', 1)
    assert judged(text).deviations[0].rule == "growth"


def test_a_window_below_four_datagrams_deviates() -> None:
    text = re.sub(r'("congestion_window":)\d+', r"\g<1>3000", log("one BDP"))
    deviations = judged(text).deviations
    assert {one.rule for one in deviations} == {"minimum-window"}
    assert {one.expected_low for one in deviations} == {4 * 1472}
    assert all(one.expected_low <= one.expected_high < float("inf") for one in deviations)
