"""Whole runs in a guest: the same bytes again, all algorithms, and beside the packet engine."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from small_networks import dumbbell, leaf_spine

import ackclock as ac
from ackclock.engines.linux import disciplines, guest, stack

pytestmark = pytest.mark.usefixtures("guest_kernel")

DUMBBELL = """
duration = "1s"
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "20ms"
queue = { discipline = "fq_codel" }
loss = { probability = 0.01 }
[[flows]]
count = 2
congestion = "cubic"
start = { jitter = "100ms" }
"""


def plan(text):
    return ac.loads(text).plan()


def run(text, engine="linux", seed=1):
    return ac.run(plan(text), engine=engine, seeds=[seed], jobs=1)


def contents(folder):
    """Every file's bytes; the manifest without the time at which it was written, and without its own SHA-256."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet") if path.is_file()}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest.pop("created")
    assert manifest.pop("sha256")
    return files, manifest


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path):
    first, again, other = (
        contents(run(DUMBBELL, seed=seed).write(tmp_path / name)) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again
    assert first[1]["linux"]["release"].startswith("6.")
    assert first[0]["flows.parquet/part-0000.parquet"] != other[0]["flows.parquet/part-0000.parquet"]
    assert first[0]["events.parquet/part-0000.parquet"] != other[0]["events.parquet/part-0000.parquet"]


def test_a_guest_has_the_memory_that_it_is_given(monkeypatch):
    started = []

    def start(machine, *_):
        started.append(machine)
        raise EnoughError

    monkeypatch.setattr(guest, "run", start)
    for memory, expected in (("", "mem=512M"), ('[linux]\nmemory = "96MiB"\n', "mem=96M")):
        with pytest.raises(EnoughError):
            run(DUMBBELL + memory)
        assert expected in started[-1].arguments()
    with pytest.raises(ac.ScenarioError, match=r'linux.memory: found "1MiB"; expected 96MiB to 64GiB'):
        plan(DUMBBELL + '[linux]\nmemory = "1MiB"\n')


class EnoughError(Exception):
    """Raised to end a run early."""


#: Parameters of qdiscs whose spec requires some, or for which the kernel has only one value.
GIVEN = {
    "pfifo": 'limit = "100p"',
    "bfifo": 'limit = "64KB"',
    "red": 'limit = "400KB", min = "30KB", max = "90KB", ecn = true',
    "ared": 'limit = "100p", gentle = false',
    "prio": 'limit = "100p"',
    "synprio": 'limit = "100p"',
    "synfinprio": 'limit = "100p"',
    "tbf": 'rate = "9Mbit", burst = "10KB", limit = "64KB", per_flow = false',
}


NAMES = sorted(disciplines.NAMES)


@pytest.mark.parametrize("names", list(zip(NAMES[::2], [*NAMES[1::2], NAMES[0]], strict=False)), ids="-".join)
def test_every_discipline_is_accepted_and_lets_a_transfer_through(names):
    """One each way."""
    down, up = (f'{{ discipline = "{name}"' + (f", {GIVEN[name]}" if name in GIVEN else "") + " }" for name in names)
    found = run(f"""
duration = "1s"
[network]
topology = "asymmetric"
down = {{ rate = "10Mbit", delay = "5ms", queue = {down} }}
up = {{ rate = "10Mbit", delay = "5ms", queue = {up} }}
[[flows]]
size = "200KB"
[[flows]]
size = "200KB"
direction = "up"
""")
    assert found.flows["delivered_bytes"].to_list() == [200_000] * 2
    assert found.flows["fct_s"].null_count() == 0
    assert found.links["departed_p"].min() >= 200_000 // 1448


def test_every_congestion_control_is_accepted_and_carries_a_transfer():
    names = sorted(stack.CONTROLS)
    ecn = {"dctcp": 'tcp = { ecn = "dctcp" }\n'}
    flows = "".join(
        f'[[flows]]\ncongestion = "{name}"\nstart = "{100 * number}ms"\nsize = "100KB"\n{ecn.get(name, "")}'
        for number, name in enumerate(names)
    )
    found = run(f"""
duration = "{len(names) / 10 + 2:g}s"
{dumbbell("20Mbit", "10ms", "100p")}
{flows}""")
    assert found.flows["congestion"].to_list() == names
    assert found.flows["delivered_bytes"].to_list() == [100_000] * len(names)


FLOW = '[[flows]]\ncongestion = "reno"\nstart = { jitter = "100ms" }\n'
NETWORK = """
duration = "2s"
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "20ms"
queue = {}
"""
PFIFO = '{ discipline = "pfifo", limit = "100p" }'
POISSON = '[[traffic]]\nkind = "poisson"\nrate = "10/s"\nsize = { distribution = "exponential", mean = "20KB" }\n'
ON_OFF = """[[traffic]]
kind = "on-off"
packet = "1000B"
rate = "200/s"
on = { distribution = "exponential", mean = "200ms" }
off = { distribution = "exponential", mean = "200ms" }
"""
LEAF_SPINE = f"""
duration = "100ms"
{leaf_spine(2, 2, 1)}
[[flows]]
between = "permutation"
congestion = "reno"
start = {{ jitter = "10ms" }}
[record]
interval = "50ms"
"""

#: Scenarios whose flows both engines know alike.
ALIKE = {
    "UDP": NETWORK.replace("{}", PFIFO) + FLOW + ON_OFF,
    "requests": NETWORK.replace("{}", PFIFO) + FLOW + 'request = "300B"\nsize = "50KB"\n',
    "Poisson": NETWORK.replace("{}", PFIFO) + FLOW + POISSON,
    "random loss": NETWORK.replace("{}", PFIFO + "\nloss = { probability = 0.01 }") + FLOW + POISSON,
    "priorities": NETWORK.replace("{}", '{ discipline = "prio", limit = "100p" }') + FLOW + FLOW + "priority = 6\n",
    "codepoints": NETWORK.replace("{}", '{ discipline = "cake" }')
    + FLOW
    + FLOW
    + 'dscp = "ef"\n'
    + ON_OFF
    + 'dscp = "le"\n',
    "leaf and spine": LEAF_SPINE,
}


@pytest.mark.parametrize("text", ALIKE.values(), ids=ALIKE.keys())
def test_the_flows_are_those_of_the_packet_engine(text):
    """The same flows between the same ends, with the same starts and sizes, by the same seed."""
    theirs, ours = (run(text, engine, seed=3).flows.sort("flow") for engine in ("packet", "linux"))
    same = ["flow", "group", "source", "destination", "congestion", "size_bytes"]
    assert ours.select(same).equals(theirs.select(same))
    assert ours["start_s"].to_list() == pytest.approx(theirs["start_s"].to_list(), abs=2e-9)
    if "loss" not in text:  # of which the kernel draws others
        assert ours["delivered_bytes"].sum() == pytest.approx(theirs["delivered_bytes"].sum(), rel=0.25)


def test_random_losses_are_as_many_as_they_should_be():
    (link,) = run(ALIKE["random loss"], seed=3).links.filter(pl.col("lost_total_p") > 0).iter_rows(named=True)
    assert link["arrived_total_p"] > 1000, "so a standard error of 0.3 %"
    assert link["lost_total_p"] / link["arrived_total_p"] == pytest.approx(0.01, abs=0.006)


def test_a_transfer_takes_as_long_as_in_the_packet_engine():
    """A megabyte over 10 Mb/s and 40 ms: slow start, then the link is full, and nothing is lost."""
    queue = PFIFO.replace("100p", "1000p")
    text = NETWORK.replace("{}", queue).replace("20ms", "40ms") + '[[flows]]\ncongestion = "reno"\nsize = "1MB"\n'
    theirs, ours = (run(text, engine).flows["fct_s"][0] for engine in ("packet", "linux"))
    assert ours == pytest.approx(theirs, rel=0.02)


#: Ten segments and a FIN at once, into room for ten: the FIN is lost.
LOST_FIN = f"""
duration = "4s"
{dumbbell("1Mbit", "100ms", "10p")}
[[flows]]
congestion = "reno"
size = "14480B"
"""


def test_a_transfer_ends_with_its_last_byte_and_not_with_its_fin():
    """The FIN is sent at once, is lost, and comes again when a probe is due."""
    theirs, ours = (run(LOST_FIN, engine) for engine in ("packet", "linux"))
    assert (theirs.links["dropped_p"][0], ours.links["dropped_p"][0]) == (1, 1)
    assert (theirs.flows["retransmissions"][0], ours.flows["retransmissions"][0]) == (1, 1)
    assert ours.flows["fct_s"][0] == pytest.approx(theirs.flows["fct_s"][0], rel=0.02)


#: Alone on a fast link, by hosts that take no time, each transfer with segments of its own number.
SINGLE_FLOW = f"""
duration = "20s"
{dumbbell("100Mbit", "100ms", "1000p")}
[tcp]
processing = "0s"
"""

#: Each side of a window that is full (10, 30, 70, 150 segments), a segment alone, and one that is not full.
SEGMENTS = (1, 3, 10, 10.5, 11, 12, 30, 31, 32, 71, 72, 151, 152)


def test_transfers_end_when_the_kernels_do():
    """The FIN goes with the last segment that is not sent yet, and a single one needs no room in the window."""
    flows = "".join(
        f'[[flows]]\ncongestion = "reno"\nsize = "{int(segments * 1448)}B"\nstart = "{number}s"\n'
        for number, segments in enumerate(SEGMENTS)
    )
    theirs, ours = (run(SINGLE_FLOW + flows, engine).flows for engine in ("packet", "linux"))
    assert ours["sent_packets"].to_list() == theirs["sent_packets"].to_list()
    assert ours["fct_s"].to_list() == pytest.approx(theirs["fct_s"].to_list(), abs=10e-6)


def test_a_receiver_that_reads_does_not_have_its_buffer_made_larger():
    """Sixteen quick ACKs, then one for two segments, some more as the window opens: not one for each of the sixty."""
    text = """
duration = "2s"
[network]
topology = "asymmetric"
down = { rate = "2Mbit", delay = "20ms", queue = { discipline = "pfifo", limit = "100p" } }
up = { rate = "400kbit", delay = "20ms", queue = { discipline = "pfifo", limit = "100p" } }
[[flows]]
congestion = "reno"
size = "60p"
"""
    theirs, ours = (run(text, engine) for engine in ("packet", "linux"))
    of_packet, acks = (found.links["departed_p"][1] for found in (theirs, ours))
    assert acks < 55
    assert acks == pytest.approx(of_packet, abs=1)
    assert ours.flows["fct_s"][0] == pytest.approx(theirs.flows["fct_s"][0], rel=0.001)


#: A slow start and what follows, over a way back that counts ACKs.
SLOW_START = """
duration = "{duration}"
[network]
topology = "asymmetric"
down = {{ rate = "{rate}", delay = "{delay}", queue = {{ discipline = "pfifo", limit = "5000p" }} }}
up = {{ rate = "{rate}", delay = "{delay}", queue = {{ discipline = "pfifo", limit = "5000p" }} }}
[[flows]]
congestion = "cubic"
"""


@pytest.mark.parametrize(("rate", "delay", "duration"), [("100Mbit", "25ms", "1s"), ("20Mbit", "25ms", "3s")])
def test_a_buffer_that_grows_has_as_many_quick_acks(rate, delay, duration):
    """Some more than one for two segments, within 2 %: those of segments that open the window."""
    text = SLOW_START.format(rate=rate, delay=delay, duration=duration)
    theirs, ours = (run(text, engine).links["departed_p"].to_list() for engine in ("packet", "linux"))
    for segments, acks in (theirs, ours):
        assert acks > 0.53 * segments
    assert ours[1] / ours[0] == pytest.approx(theirs[1] / theirs[0], rel=0.02)


#: A scenario whose hundred flows have more outstanding data than a small guest's TCP memory.
MUCH_MEMORY = f"""
duration = "5s"
{dumbbell("200Mbit", "500ms")}
[[flows]]
count = 100
congestion = "reno"
"""


def test_too_little_tcp_memory_of_a_guest_is_reported(recwarn):
    assert run(MUCH_MEMORY).runs[0]["memory_pressures"] == 0
    assert not recwarn
    with pytest.warns(UserWarning, match=r"^TCP ran out of memory \(net.ipv4.tcp_mem\) \d+ times: "):
        found = run(MUCH_MEMORY + '[linux]\nmemory = "96MiB"\n')
    assert found.runs[0]["memory_pressures"] > 0


SWEEP = f"""
duration = "200ms"
{dumbbell("5Mbit", "10ms", "10p")}
[[flows]]
congestion = "cubic"
start = {{ jitter = "20ms" }}
[sweep]
"network.queue.limit" = ["2p", "4p", "6p", "10p"]
"flows[0].congestion" = ["reno", "vegas"]
"""

#: A part after every run, so that a kill finds some.
SWEEPING = """
import sys
from ackclock.experiments.sweep import folder as parts, run
parts.PART_S = parts.PART_SHARE = 0.0
run.MAX_IN_TASK = 1
import ackclock as ac
if __name__ == "__main__":
    ac.sweep(sys.argv[1], "linux", out=sys.argv[2], jobs=2, metrics=["utilisation", "jain"])
"""


def test_a_sweep_of_guests_may_be_killed_and_goes_on(tmp_path):
    """Two guests at a time; killed at some moments and run again, the table is that of an undisturbed one."""
    scenario, script = tmp_path / "small.toml", tmp_path / "sweeping.py"
    scenario.write_text(SWEEP)
    script.write_text(SWEEPING)
    command = [sys.executable, str(script), str(scenario)]
    subprocess.run([*command, str(tmp_path / "whole")], check=True)
    draw, kills = random.Random(7), 0
    for longest_s in [*(draw.uniform(1.5, 4.0) for _ in range(3)), None]:
        process = subprocess.Popen([*command, str(tmp_path / "killed")], start_new_session=True)
        try:
            assert process.wait(timeout=longest_s) == 0
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
    assert kills > 0
    table = Path("points.parquet")
    assert (tmp_path / "killed" / table).read_bytes() == (tmp_path / "whole" / table).read_bytes()
    assert pl.read_parquet(tmp_path / "whole" / table)["utilisation"].n_unique() > 3
