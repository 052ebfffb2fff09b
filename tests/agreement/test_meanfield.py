"""The mean-field model beside the packet engine, from one scenario each.

Where the queue drops by lot (RED), as the model has it, the packet engine comes to the limit as the number of flows
grows. Behind a tail-drop queue losing takes time (`recovery`): as many flows lose as in packets and windows swing as
fast on FTTH lines, but more packets are lost than the model says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import metrics
from ackclock.metrics import epoch, oscillation

PFIFO = '{{ discipline = "pfifo", limit = "{limit}p" }}'

#: The average follows some two seconds of packets, and up to a fiftieth of them is dropped.
RED = (
    '{{ discipline = "red", limit = "{most}KB", min = "{low}KB", max = "{high}KB", probability = 0.02, '
    'weight = {weight}, avpkt = "1480B", gentle = true }}'
)

#: The model has no timeouts. With one RTT sample at a time, the stack's default, windows of 50 flows spread 5 % wider.
SCENARIO = """
name = "like flows"
duration = "{duration}s"
warmup = "{warmup}s"
seeds = [1]
[network]
topology = "dumbbell"
rate = "{rate}Mbit"
rtt = "{rtt}ms"
frame_overhead = "0B"
queue = {queue}
[[flows]]
count = {flows}
congestion = {{ kind = "cubic", variant = "2008", fast_convergence = false }}
tcp = {{ stack = "ns2", mss = "1440B", sack = true, rtt_sampling = "each_ack" }}
start = {{ jitter = "1s" }}
[record]
interval = "10ms"
"""


@dataclass(frozen=True)
class Measured:
    """Mean window, its quantiles over flows and time, period; share of the flows hit and packets lost in an epoch."""

    window: float
    quantiles: np.ndarray
    period_s: float
    hit: float
    lost: float


def measure(
    engine: str, flows: int, *, mbps: float, queue: str, buffer_p: int, rtt_ms: float, **times: float
) -> Measured:
    """A run; rate and buffer are those of a flow."""
    kb = 1.48 * flows
    filled = queue.format(
        limit=buffer_p * flows, most=200 * kb, low=10 * kb, high=100 * kb, weight=f"{0.02 / flows:.6f}"
    )
    text = SCENARIO.format(rate=mbps * flows, rtt=rtt_ms, queue=filled, flows=flows, **times)
    view = next(metrics.runs(ac.run(ac.loads(text).plan(), engine=engine)))
    windows = view.measured_samples["cwnd"].to_numpy()
    hit = view.given.get("synchronisation", epoch.synchronisation(view))
    lost = view.given.get("losses_per_epoch", epoch.losses_per_epoch(view))
    period_s = oscillation.cwnd_period_s(view)
    return Measured(float(windows.mean()), np.quantile(windows, (0.1, 0.5, 0.9)), period_s, hit, lost / flows)


def ftth(engine: str, flows: int, queue: str, duration: float = 45.0) -> Measured:
    """Belhareth 2014, scenario A: 100 Mb/s, 20 ms and 50 packets a flow."""
    return measure(engine, flows, mbps=100, queue=queue, buffer_p=50, rtt_ms=20, duration=duration, warmup=20)


def test_with_random_drops_the_simulator_approaches_the_limit():
    limit = ftth("meanfield", 100, RED)
    few, many = ftth("packet", 10, RED, 50), ftth("packet", 50, RED, 35)
    off = {name: abs(one.window / limit.window - 1) for name, one in {"few": few, "many": many}.items()}
    assert off["few"] < 0.03  # ten flows
    assert off["many"] < 0.005  # fifty
    assert off["many"] < off["few"]
    assert many.quantiles == pytest.approx(limit.quantiles, rel=0.03)


def metrics_of(engine: str, text: str) -> dict[str, float]:
    return ac.run(ac.loads(text).plan(), engine=engine).metrics()["runs"][0]["metrics"]


def aqm(queue):
    return f"""
name = "like flows"
duration = "40s"
warmup = "15s"
seeds = [1]
{dumbbell("100Mbit", "40ms", "1000p", queue)}
[[flows]]
count = 20
congestion = "reno"
start = {{ jitter = "1s" }}
[record]
interval = "10ms"
"""


#: Chosen, with the bounds, before it was run.
FRESH = {'rtt = "40ms"': 'rtt = "25ms"', "100Mbit": "200Mbit", "count = 20": "count = 15", "reno": "cubic"}


def fresh(text: str) -> str:
    for old, new in FRESH.items():
        text = text.replace(old, new)
    return text


AQMS = [
    pytest.param("codel", str, id="CoDel, 20 Reno"),
    pytest.param("codel", fresh, id="CoDel, 15 CUBIC"),
    pytest.param("pie", str, id="PIE, 20 Reno"),
    pytest.param("pie", fresh, id="PIE, 15 CUBIC"),
]


@pytest.fixture(scope="module")
def behind_aqm():
    """The model's and the packets' metrics, each run once."""
    found: dict[tuple[str, bool], list[dict[str, float]]] = {}

    def get(queue, setting):
        key = (queue, setting is fresh)
        if key not in found:
            found[key] = [metrics_of(engine, setting(aqm(queue=queue))) for engine in ("meanfield", "packet")]
        return found[key]

    return get


@pytest.mark.parametrize(("queue", "setting"), [one.values for one in AQMS])
def test_behind_an_aqm_delay_and_utilisation_are_the_models(queue, setting, behind_aqm):
    model, packet = behind_aqm(queue, setting)
    assert model["utilisation"] == pytest.approx(packet["utilisation"], abs=0.02)
    assert model["queue_mean_p"] == pytest.approx(packet["queue_mean_p"], rel=0.15)


@pytest.mark.parametrize(("queue", "setting"), AQMS)
def test_behind_an_aqm_losses_are_the_models(queue, setting, behind_aqm):
    model, packet = behind_aqm(queue, setting)
    assert model["loss_rate"] == pytest.approx(packet["loss_rate"], rel=0.2)


@pytest.fixture(scope="module")
def tail_drop():
    return {("meanfield", 10): ftth("meanfield", 10, PFIFO), ("packet", 10): ftth("packet", 10, PFIFO)}


def test_behind_a_tail_drop_queue_the_mean_window_is_the_models(tail_drop):
    model, packet = tail_drop["meanfield", 10], tail_drop["packet", 10]
    assert model.window == pytest.approx(packet.window, rel=0.05)


def test_behind_a_tail_drop_queue_as_many_flows_lose_and_windows_swing_as_fast(tail_drop):
    model, packet = tail_drop["meanfield", 10], tail_drop["packet", 10]
    assert packet.hit == pytest.approx(model.hit, abs=0.05)
    assert packet.period_s == pytest.approx(model.period_s, rel=0.1)


@pytest.mark.xfail(strict=True, reason="packets lose 0.51 a flow in an overflow, the model 0.37")
def test_behind_a_tail_drop_queue_as_many_packets_are_lost(tail_drop):
    model, packet = tail_drop["meanfield", 10], tail_drop["packet", 10]
    assert packet.lost == pytest.approx(model.lost, rel=0.3)


def test_inside_a_data_centre_the_mean_window_is_the_models():
    """Belhareth 2014, scenario B: 1 Gb/s, 1 ms and 50 packets a flow."""
    network = {"mbps": 1000, "queue": PFIFO, "buffer_p": 50, "rtt_ms": 1, "duration": 4, "warmup": 2}
    model, packet = (measure(engine, 10, **network) for engine in ("meanfield", "packet"))
    assert model.window == pytest.approx(packet.window, rel=0.05)


def test_between_data_centres_the_model_includes_synchronisation():
    """Scenario C at a tenth of its rate and buffer: most flows lose in an overflow, in the model and in packets.

    With N = 10 at full rate the simulator has 97 %, the model 86 % (B3.9–3.10).
    """
    network = {"mbps": 100, "queue": PFIFO, "buffer_p": 50, "rtt_ms": 50, "duration": 60, "warmup": 20}
    model, packet = (measure(engine, 10, **network) for engine in ("meanfield", "packet"))
    assert model.hit > 0.5
    assert packet.hit > 0.5
    assert model.window == pytest.approx(packet.window, rel=0.05)
