"""The real kernel beside its recorded runs, and the packet engine beside the real kernel.

The short form of two comparisons. `docs/make_matrix.py` has the long one of the packet engine. Of the recorded runs,
those are held here that come out again: single flows over a queue of one BDP, but for BIC and Vegas, whose outcome
hangs on how the recording's receive buffer grew.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from agreement import linux

import ackclock as ac
from ackclock.plan import FlowPlan, Plan

pytestmark = pytest.mark.usefixtures("guest_kernel")

#: Tolerances: of the goodput, and of the drops, or a number of packets.
GOODPUT, DROPS, DROPPED_P = 0.005, 0.05, 2

#: The recording's receiver read every 5 ms; a receive buffer that is large from the start comes nearest to it.
RECORDED = """
[linux]
reader = "periodic"
app_interval = "5ms"
sysctls = { "net.ipv4.tcp_rmem" = "4096 16777216 268435456" }
"""

REPEATED = [
    run
    for run in linux.recorded("summary")
    if run.flows == 1 and run.run.endswith("83p-1x") and run.congestion not in ("bic", "vegas")
]

MATRIX = tomllib.loads((Path(__file__).parent / "matrix.toml").read_text(encoding="utf-8"))["sweep"]

#: Congestion control, and queue as `matrix.toml` has it: one flow, 10 Mb/s, 50 ms.
CELLS = [
    ("reno", 2),
    ("cubic", 1),
    ("cubic", 3),
    ("bic", 2),
    ("highspeed", 2),
    ("scalable", 6),
    ("vegas", 2),
    ("bbr", 2),
    ("hybla", 2),
]


def far(flow: FlowPlan) -> FlowPlan:
    """The recording's only delay is on the way back."""
    assert not flow.reverse.hops
    delay_s = sum(hop.delay_s for hop in flow.forward.hops) + flow.forward.delay_s + flow.reverse.delay_s
    hops = tuple(replace(hop, delay_s=0.0) for hop in flow.forward.hops)
    return replace(
        flow,
        forward=replace(flow.forward, hops=hops, delay_s=0.0),
        reverse=replace(flow.reverse, delay_s=delay_s),
    )


def as_recorded(run: linux.Run) -> Plan:
    text = run.scenario.replace(f'receive_window = "{linux.WINDOW}"\n', "") + RECORDED
    plan = ac.loads(text, f"{run.run}.toml").plan()
    return replace(plan, flows=tuple(map(far, plan.flows)))


@pytest.mark.parametrize("run", REPEATED, ids=lambda run: run.run)
def test_a_recorded_run_is_reproduced(run):
    found = linux.Simulated(run, ac.run(as_recorded(run), "linux", seeds=[1]))
    print(f"{run.run}: {found.goodput_difference:+.2%}, {found.drops} drops, recorded {run.drops}")
    assert abs(found.goodput_difference) <= GOODPUT
    assert abs(found.drops - run.drops) <= max(DROPS * run.drops, DROPPED_P)


@pytest.mark.parametrize("name", linux.READ_LATE)
def test_where_the_recordings_reader_decides_a_prompt_one_does_as_the_packet_engine(name):
    """The goodput within 2 %, the queueing delay within 0.5 ms and the drops within a fifth of the kernel's."""
    (run,) = (run for run in linux.recorded("summary") if run.run == name)
    kernel, packet = by(run, "linux"), by(run, "packet")
    for metric, tolerance in (
        ("goodput_bps", {"rel": 0.02}),
        ("queueing_delay_s", {"abs": 0.5e-3}),
        ("drops", {"rel": 0.2}),
    ):
        assert mean(packet, metric) == pytest.approx(mean(kernel, metric), **tolerance), metric
    assert not linux.simulate(run).agrees, "so it need not be named here"


#: A run that has another outcome with another RTT, in either engine: Westwood behind eight packets has 3.9 to 4.3 Mb/s
#: at 47.5 to 52.5 ms. It is compared by its mean over these.
CHANGEABLE = {"westwood-20M-50ms-8p-1x": ("48ms", "49ms", "50ms", "51ms", "52ms")}


def by(run: linux.Run, engine: str) -> list[linux.Simulated]:
    """The run by an engine, once or with each RTT that it is compared over."""
    rtts = CHANGEABLE.get(run.run, ("50ms",))
    texts = [run.scenario.replace('rtt = "50ms"', f'rtt = "{rtt}"') for rtt in rtts]
    plans = [ac.loads(text, f"{run.run}.toml").plan() for text in texts]
    return [linux.Simulated(run, ac.run(plan, engine, seeds=[1])) for plan in plans]


def mean(runs: Sequence[linux.Simulated], metric: str) -> float:
    return statistics.fmean(getattr(run, metric) for run in runs)


def test_the_recorded_runs_exist():
    assert len(REPEATED) == 8


@pytest.mark.parametrize(("control", "queue"), CELLS)
def test_the_packet_engine_does_as_the_kernel(control, queue):
    plan = cell(control, queue)
    packet, kernel = (ac.run(plan, engine, seeds=[1]).metrics()["runs"][0]["metrics"] for engine in ("packet", "linux"))
    differences = {name: packet[name] / kernel[name] - 1 if kernel[name] else packet[name] for name in TOLERANCES}
    print(control, MATRIX["network.queue"][queue], differences)
    assert all(abs(differences[name]) <= tolerance for name, tolerance in TOLERANCES.items())


#: Largest relative differences; of a loss rate that is 0 in the kernel, the packet engine's own.
TOLERANCES = {"goodput_bps": 0.02, "queue_delay_mean_s": 0.10, "loss_rate": 0.20}


def cell(control: str, queue: int) -> Plan:
    """A point of the matrix."""
    loaded = ac.load(Path(__file__).parent / "matrix.toml")
    wanted = {"network.rate": "10Mbit", "network.rtt": "50ms", "flows[0].count": 1}
    wanted |= {"network.queue": MATRIX["network.queue"][queue]}
    number = next(
        number
        for number in range(loaded.sweep.count)
        if (values := loaded.sweep.values(number)).items() >= wanted.items()
        and control in (given := values["flows[0].congestion"], isinstance(given, dict) and given["kind"])
    )
    return loaded.point(number).plan
