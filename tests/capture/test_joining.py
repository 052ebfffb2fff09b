"""Two captures of one run, one of them with another clock, joined: beside what the run did."""

from __future__ import annotations

import json
import struct
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import ackclock
from ackclock.capture import match
from ackclock.capture.match import relate
from ackclock.cli.program import application
from ackclock.dataset import Dataset
from ackclock.dataset.result_kind import Kind, kind

SCENARIO = """\
name = "between"
duration = "4s"
repeats = 1
[network]
topology = "dumbbell"
rate = "8Mbit"
rtt = ["20ms", "40ms"]
queue = { discipline = "pfifo", limit = "20p" }
loss = { probability = 0.003 }
[[flows]]
count = 2
congestion = "cubic"
[record]
pcap = ["senders", "receivers"]
"""

OFFSET_S, DRIFT = -1234.5, 60e-6


def rewritten(path, out, when):
    """A copy of a capture of the packet engine with other times (nanoseconds), or without packets (None)."""
    content, place = path.read_bytes(), 24
    result, number = [content[:24]], 0
    while place < len(content):
        seconds, ns, kept, length = struct.unpack_from("<IIII", content, place)
        time_ns = when(number, seconds * 10**9 + ns)
        if time_ns is not None:
            result += [
                struct.pack("<IIII", *divmod(time_ns, 10**9), kept, length),
                content[place + 16 : place + 16 + kept],
            ]
        place, number = place + 16 + kept, number + 1
    out.write_bytes(b"".join(result))
    return out


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("joining")


@pytest.fixture(scope="module")
def run(place):
    return ackclock.run(ackclock.loads(SCENARIO).plan(), captures=place / "made", seeds=[2])


@pytest.fixture(scope="module")
def files(run, place):
    """At the senders; at the receivers, by their own clock."""
    receivers, senders = sorted((place / "made").iterdir())
    assert "senders" in senders.name

    def when(_, time_ns):
        return time_ns + 2000 * 10**9 + round(1e9 * OFFSET_S + DRIFT * time_ns)

    return senders, rewritten(receivers, place / "receivers.pcap", when)


def lost(run):
    """Data that was lost, but for the very end, where it may as well be under way."""
    sent = run.transmissions.with_columns(came=pl.col("arrival_s").is_not_null())
    last_s = pl.col("time_s").filter("came").max().over("flow", "end")
    longest_s = (pl.col("arrival_s") - pl.col("time_s")).max()
    sent = sent.filter((pl.col("time_s") < last_s) | (pl.col("time_s") + longest_s < pl.col("arrival_s").max()))
    return sent.filter(pl.col("fate").is_in(["dropped", "lost"]))


def drops(run):
    data = pl.col("payload_bytes") > 0
    return lost(run).filter(data).height, lost(run).filter(~data).height


@pytest.mark.parametrize("swapped", [False, True])
def test_clocks_losses_and_delays_are_those_of_the_run(run, files, swapped):
    result = match.read(*(reversed(files) if swapped else files))
    joined = result.analysis["joined"]
    assert joined["first"] == str(files[0])
    assert (joined["segments_lost_between"], joined["acks_lost_between"]) == drops(run)
    assert drops(run)[0] > 20
    nothing = ("segments_lost_before", "segments_lost_after", "missed_by_first", "missed_by_second", "reordered")
    assert [joined[key] for key in nothing] == [0] * 5
    assert joined["unresolved"] < 100
    relation = match.join(*files).relation
    assert relation is not None
    true_s = 2000 + OFFSET_S + DRIFT * relation.reference_s
    # A packet takes 1.2 ms of the bottleneck, which the shortest delays of both directions may differ by.
    assert abs(joined["offset_s"] - true_s) < 1.3e-3 < joined["offset_error_s"]
    assert joined["drift_ppm"] == pytest.approx(1e6 * DRIFT, abs=max(0.5, joined["drift_error_ppm"]))
    arrived = run.transmissions.drop_nulls("arrival_s")
    delays = arrived.filter(pl.col("end") == "sender").select(pl.col("arrival_s") - pl.col("time_s")).to_series()
    assert joined["delay_forward_s"]["min"] == pytest.approx(delays.min(), abs=1.3e-3)
    assert joined["delay_forward_s"]["p95"] == pytest.approx(delays.quantile(0.95), rel=0.05)


def test_the_tables_have_each_loss_and_the_delays(run, files):
    data = match.read(*files).data
    placed = data.frame("placed")
    true = lost(run)
    origin_s = run.transmissions["time_s"].min()
    assert placed["place"].unique().to_list() == ["between"]
    np.testing.assert_allclose(placed["time_s"].sort(), true["time_s"].sort() - origin_s, atol=2e-6)
    delays = data.frame("delays")
    assert set(delays["flow"].unique()) == {0, 1, 2, 3}
    assert (delays["delay_min_s"] <= delays["delay_mean_s"]).all()
    assert delays["delay_min_s"].min() > 0.009


def test_what_a_capture_missed_is_not_lost(run, files, place):
    """Every hundredth packet is not in the second capture; no reordering, and no more losses come of it."""
    full = match.read(*files).analysis["joined"]
    sparse = rewritten(files[1], place / "sparse.pcap", lambda number, time_ns: None if number % 100 == 50 else time_ns)
    joined = match.read(files[0], sparse).analysis["joined"]
    assert joined["segments_lost_between"] == full["segments_lost_between"]
    removed = len(range(50, full["packets"], 100))
    # Acknowledgements that a capture missed cannot be told from those that were lost.
    assert joined["missed_by_second"] + joined["missed_by_first"] + joined["acks_lost_between"] == pytest.approx(
        removed, abs=2
    )


def test_what_overtakes_is_counted(files, place):
    content = files[1].read_bytes()
    swapped = place / "swapped.pcap"
    records, at = [], 24
    while at < len(content):
        kept = struct.unpack_from("<IIII", content, at)[2]
        records.append((content[at : at + 16], content[at + 16 : at + 16 + kept]))
        at += 16 + kept
    large = [number for number in range(200, len(records) - 200) if int.from_bytes(records[number][1][16:18]) > 1000]
    pairs = [(one, two) for one, two in pairwise(large) if records[one][1][26:38] == records[two][1][26:38]][::3]
    for one, two in pairs:
        (time_one, body_one), (time_two, body_two) = records[one], records[two]
        records[one], records[two] = (time_one, body_two), (time_two, body_one)
    swapped.write_bytes(content[:24] + b"".join(time + body for time, body in records))
    assert len(pairs) > 5
    assert match.read(files[0], swapped).analysis["joined"]["reordered"] == len(pairs)


def test_the_clock_that_is_less_disturbed_reports_the_drift():
    """Forward there is a queue but for the first moment; back there is none."""
    times_s = np.linspace(0, 10, 101)
    later_s = 3.0 + 50e-6 * times_s
    queue_s = np.where(times_s > 0.1, 0.02 + 0.01 * np.sin(times_s), 0.0)
    result = relate((times_s, later_s + 0.01 + queue_s), (times_s, later_s - 0.01), 1e-6)
    assert result.drift == pytest.approx(50e-6, abs=1e-9)
    assert float(result.at(np.array(5.0))) == pytest.approx(3.00025, abs=1e-6)
    assert result.error_s == pytest.approx(0.01, abs=1e-5)
    with pytest.raises(ValueError, match="one direction"):
        relate((times_s, later_s), (times_s[:0], later_s[:0]), 1e-6)


def test_a_capture_joined_with_itself_differs_in_nothing(files):
    joined = match.read(files[0], files[0]).analysis["joined"]
    assert (joined["offset_s"], joined["drift_ppm"]) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert joined["segments_lost_between"] == joined["unresolved"] == joined["reordered"] == 0


def call(*arguments):
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


def test_the_command_reports_and_writes_it(files, place):
    done = call("capture", *files, "--join", "--json", "--out", place / "out")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["joined"]["segments_lost_between"] > 20
    assert kind(place / "out") is Kind.CAPTURE
    assert Dataset.read(place / "out").frame("placed").height > 20
    reported = " ".join(call("capture", *files, "--join").stdout.split())
    assert "segments lost between the vantage points" in reported
    assert "Delay back: min 10.0 ms" in reported


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (("{0}",), "--join: found 1 file; expected two"),
        (("{0}", "{1}", "{1}"), "--join: found 3 files; expected two"),
        (("{0}", "-"), "--join: found standard input; expected two files, which are read twice"),
        (("{0}", "{other}"), "expected two captures of the same flows"),
    ],
)
def test_what_cannot_be_joined_is_one_line(files, place, names, line):
    other = place / "other.pcap"
    if not other.exists():  # other addresses
        other.write_bytes(files[1].read_bytes().replace(b"\x0a\x00\x00", b"\x0a\x09\x00"))
    done = call("capture", *(name.format(*files, other=other) for name in names), "--join")
    assert done.exit_code == 2
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_captures_of_other_runs_are_not_joined(files, place):
    moved = place / "moved.pcap"
    content = bytearray(files[1].read_bytes())
    at = 24
    for number in range(10**9):  # another segment in most packets: nine of ten
        if at >= len(content):
            break
        kept = int.from_bytes(content[at + 8 : at + 12], "little")
        if number % 20:
            content[at + 16 + 14 + 20 + 4] ^= 0x55
        at += 16 + kept
    moved.write_bytes(bytes(content))
    done = call("capture", files[0], moved, "--join")
    assert done.exit_code == 2
    assert "packets of the same connections" in done.stderr
    assert done.stderr.count("\n") == 1


def test_few_packets_leave_the_drift_unknown():
    out = np.array([0.0, 0.1, 0.9]), np.array([0.0201, 0.0203, 0.0202])
    back = np.array([0.05, 0.15]), np.array([-0.0201, -0.0204])
    first = relate(out, back, 1e-9)
    assert (first.drift, first.drift_error) == (0.0, np.inf)
    assert abs(first.offset_s) <= first.error_s
