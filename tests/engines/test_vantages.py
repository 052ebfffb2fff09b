"""Packet captures from several vantages: the same frames, each where and when it passes."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter

import polars as pl
import pytest
from pcaps import frames
from small_networks import dumbbell, leaf_spine

import ackclock as ac
from ackclock.engines.engine import RunOptions
from ackclock.errors import ScenarioError

TEXT = f"""
duration = "2s"
{dumbbell("10Mbit", "20ms", "10p")}
[[flows]]
# What passes a link is seen at the hosts a propagation delay later, to the nanosecond.
tcp = {{ processing = "0s" }}
congestion = "cubic"
size = "500KB"
count = 2
start = {{ every = "100ms" }}
[record]
packets = true
pcap = ["senders", "receivers", "link:bottleneck"]
"""
ONE_WAY_S = 0.01


def captured(text, folder):
    """The run, and what each file of it holds, by the file's name without the seed."""
    data = ac.run(ac.loads(text).plan(), seeds=[1], captures=folder)
    return data, {path.stem.removeprefix("seed-1-"): frames(path) for path in folder.iterdir()}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return captured(TEXT, tmp_path_factory.mktemp("captures"))


def times_s(seen):
    return {frame.key: frame.time_s for frame in seen}


def test_each_vantage_has_a_file_in_the_order_of_time(run):
    _, seen = run
    assert sorted(seen) == ["link-bottleneck", "receivers", "senders"]
    for found in seen.values():
        times = [frame.time_s for frame in found]
        assert times == sorted(times)
        assert len(times_s(found)) == len(found), "each packet once, also one that is sent again"


def test_data_reach_the_receiver_half_an_rtt_after_they_have_left_the_link(run):
    data, seen = run
    sent, passed, received = (
        times_s(f for f in seen[at] if f.payload_bytes) for at in ("senders", "link-bottleneck", "receivers")
    )
    assert passed.keys() == received.keys() < sent.keys()
    assert len(sent) - len(passed) == data.flows["dropped_packets"].sum() > 0
    for key, left_s in passed.items():
        assert received[key] - left_s == pytest.approx(ONE_WAY_S, abs=2e-9)
        assert left_s - sent[key] > 1e-4


def test_acks_pass_the_link_where_the_data_do(run):
    """Its queue is at the senders, and on the way back is none."""
    _, seen = run
    heard, passed, answered = (
        times_s(f for f in seen[at] if f.source[1] == 5001) for at in ("senders", "link-bottleneck", "receivers")
    )
    assert heard == passed
    assert len(heard) > 300
    assert answered.keys() == heard.keys()
    for key, sent_s in answered.items():
        assert heard[key] - sent_s == pytest.approx(ONE_WAY_S, abs=2e-9)


def test_each_end_counts_its_packets_and_each_link_takes_one_off_their_life(run):
    _, seen = run
    for source in {frame.source for frame in seen["senders"]}:
        numbers = [frame.identification for frame in seen["senders"] if frame.source == source]
        assert numbers == [(numbers[0] + n) % 2**16 for n in range(len(numbers))]
    lives = {at: Counter((f.source[1] == 5001, f.time_to_live) for f in found) for at, found in seen.items()}
    assert lives["senders"].keys() == lives["link-bottleneck"].keys() == {(False, 64), (True, 64)}
    assert lives["receivers"].keys() == {(False, 63), (True, 64)}


def test_the_log_has_the_fate_of_each_segment(run):
    """By flow and the time at which it was sent: there is no delay before the first queue."""
    data, seen = run
    log = data.packets.filter(pl.col("kind").is_in(["data", "data_fin"]))
    in_ns = (1e9 * pl.col("time_s")).floor().cast(pl.Int64)
    entered = log.filter(pl.col("what").is_in(["enqueue", "drop"])).select("flow", in_ns)
    known = Counter(entered.rows())
    sent = Counter((f.source[1] - 49_152, round(1e9 * f.time_s)) for f in seen["senders"] if f.payload_bytes)
    assert sum(sent.values()) == log.filter(pl.col("what").is_in(["dequeue", "drop"])).height
    missing = [key for key in sent if not any((key[0], key[1] + ns) in known for ns in (-1, 0, 1))]
    assert missing == []


def test_checksums_are_right(tmp_path):
    tcpdump = shutil.which("tcpdump") or pytest.skip("there is no tcpdump")
    captured(TEXT.replace('"cubic"', '"dctcp"'), tmp_path)
    for path in tmp_path.iterdir():
        done = subprocess.run([tcpdump, "-nvvr", path], capture_output=True, text=True, check=True)
        assert "cksum 0x" in done.stdout
        assert "(correct)" in done.stdout
        assert "incorrect" not in done.stdout
        assert "bad cksum" not in done.stdout


REVERSE = TEXT.replace(
    "[[flows]]", 'reverse = { rate = "200kbit", queue = { discipline = "pfifo", limit = "50p" } }\n[[flows]]', 1
)


def test_queued_acks_carry_their_departure_time_at_the_receiver(tmp_path):
    text = REVERSE.replace("link:bottleneck", "link:reverse")
    _, seen = captured(text, tmp_path)
    heard, passed, answered = (
        times_s(f for f in seen[at] if f.source[1] == 5001) for at in ("senders", "link-reverse", "receivers")
    )
    assert heard.keys() <= passed.keys() <= answered.keys()
    waits_s = [passed[key] - answered[key] for key in passed]
    assert max(waits_s) > 0.01, "the queue on the way back is long"
    for key, heard_s in heard.items():
        assert heard_s - passed[key] == pytest.approx(ONE_WAY_S, abs=2e-9)
    data = times_s(f for f in seen["link-reverse"] if f.payload_bytes)
    reached = times_s(f for f in seen["receivers"] if f.payload_bytes)
    assert data == reached, "it is at the receivers"


ROUTED = f"""
duration = "100ms"
{leaf_spine(2, 1, 1)}
[[flows]]
from = "h0"
to = "h1"
size = "50KB"
[record]
pcap = ["senders", "link:h0>leaf-0", "receivers"]
"""


def test_a_cable_between_nodes_has_both_directions(tmp_path):
    _, seen = captured(ROUTED, tmp_path)
    sent, passed, received = (Counter(f.key for f in seen[at]) for at in ("senders", "link-h0-leaf-0", "receivers"))
    assert sent == passed == received
    assert all(frame.time_to_live in (64, 61) for frame in seen["link-h0-leaf-0"])


def test_captures_do_not_depend_on_how_often_they_are_taken(tmp_path, monkeypatch):
    from ackclock.engines import simulator

    captured(TEXT, tmp_path / "rarely")
    monkeypatch.setattr(simulator, "ROWS_PER_TAKING", 1)
    captured(TEXT, tmp_path / "often")
    for path in (tmp_path / "rarely").iterdir():
        assert path.read_bytes() == (tmp_path / "often" / path.name).read_bytes()


def test_true_means_the_senders_only(run, tmp_path):
    _, seen = run
    _, alone = captured(TEXT.replace('["senders", "receivers", "link:bottleneck"]', "true"), tmp_path)
    assert alone == {"seed-1": seen["senders"]}


@pytest.mark.parametrize(
    ("pcap", "said"),
    [
        ('"senders"', 'record.pcap: found "senders"; expected true, false, or a list of "senders", "receivers" and '),
        ('["sender"]', 'record.pcap[0]: found "sender"; expected "senders", "receivers" or "link:NAME"'),
        ('["senders", 3]', 'record.pcap[1]: found 3; expected "senders", "receivers" or "link:NAME"'),
        ('["link:"]', 'record.pcap[0]: found "link:"; expected "senders", "receivers" or "link:NAME"'),
        ('["link:neck"]', 'record.pcap[0]: found "link:neck"; expected "link:bottleneck"'),
    ],
)
def test_what_is_no_vantage_is_one_line(pcap, said):
    with pytest.raises(ScenarioError) as caught:
        ac.loads(TEXT.replace('["senders", "receivers", "link:bottleneck"]', pcap)).plan()
    (problem,) = caught.value.problems
    assert said in str(problem)


def test_files_of_links_have_names_of_their_own(tmp_path):
    from dataclasses import replace

    plan = ac.loads(TEXT).plan()
    record = replace(plan.record, pcap=("link:a>b", "link:a/b", "senders"))
    files = RunOptions(captures=tmp_path).capture_files(replace(plan, record=record), 7)
    assert [path.name for path in files] == ["seed-7-link-a-b-0.pcap", "seed-7-link-a-b-1.pcap", "seed-7-senders.pcap"]


def test_duplicate_vantages_are_merged_and_none_is_no_capture():
    def recorded(pcap):
        return ac.loads(TEXT.replace('["senders", "receivers", "link:bottleneck"]', pcap)).plan().record

    assert recorded('["receivers", "receivers"]').pcap == ("receivers",)
    assert recorded("[]").pcap is False
    assert recorded("true").vantages == ("senders",)


def test_each_retransmission_is_an_event_at_its_time(run):
    data, seen = run
    events = data.events.filter(pl.col("kind") == "retransmission").select("flow", "value", "time_s").rows()
    sent, repairs, opened = set(), [], {}
    for frame in seen["senders"]:
        opened.setdefault(frame.source, frame.sequence)
        if frame.payload_bytes:
            byte = (frame.sequence - opened[frame.source] - 1) % 2**32
            segment = frame.source[1] - 49_152, float(byte // 1448)
            repairs += [(*segment, frame.time_s)] if segment in sent else []
            sent.add(segment)
    assert [repair[:2] for repair in repairs] == [event[:2] for event in events]
    assert [repair[2] for repair in repairs] == pytest.approx([event[2] for event in events], abs=2e-9)
    assert repairs


def test_captures_have_all_until_the_end_however_often_rows_are_taken(tmp_path, monkeypatch):
    """Seven takings of 100 steps leave two steps: what is captured in them comes too."""
    from ackclock.engines import simulator

    text = TEXT.replace('size = "500KB"\n', "")
    monkeypatch.setattr(simulator, "takings", lambda plan: 7)
    _, seven = captured(text, tmp_path / "seven")
    monkeypatch.setattr(simulator, "takings", lambda plan: 1)
    _, one = captured(text, tmp_path / "one")
    assert {name: len(found) for name, found in seven.items()} == {name: len(found) for name, found in one.items()}
