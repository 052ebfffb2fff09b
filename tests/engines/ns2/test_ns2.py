"""ns-2: its script, what it cannot do, and that it agrees with the packet engine where both mean the same TCP."""

from __future__ import annotations

import os
import re
import shutil

import pytest
from changed import changed
from mixed import MIXED
from small_networks import NS_TCP, dumbbell

import ackclock as ac
from ackclock import engines
from ackclock.dataset import tables
from ackclock.engines.external import SimulatorError
from ackclock.engines.ns2 import script
from ackclock.errors import UnsupportedError
from ackclock.plan import Plan

requires_ns2 = pytest.mark.skipif(
    shutil.which("ns") is None and not os.environ.get("CI"), reason="needs ns-2 (Debian's package ns2)"
)

TEXT = f"""
name = "Four flows"
duration = "40s"
warmup = "10s"
seeds = [1]
{dumbbell("10Mbit", "40ms")}
{NS_TCP}\
[[flows]]
count = 4
congestion = "reno"
"""


def plan(*changes: tuple[str, str]) -> Plan:
    return ac.loads(changed(TEXT, *changes)).plan()


def reasons_of(*changes: tuple[str, str]) -> list[str]:
    return [reason.what for reason in engines.engine("ns2").unsupported(plan(*changes))]


def test_a_plan_for_ns2s_own_tcp_is_fully_supported():
    assert reasons_of() == []
    assert reasons_of(('"reno"', '{ kind = "cubic", slow_start = "standard" }')) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (('stack = "ns2"\nsack = true\ntimestamps = true', ""),
         ["RACK", "tail loss probes", "undone reductions", "proportional rate reduction", "quick ACKs"]),
        (('"reno"', '"cubic"'), ['congestion control "cubic" with slow_start = hystart']),
        (
            ('"reno"', '{ kind = "cubic", slow_start = "standard", c = 0.2 }'),
            ['congestion control "cubic" with c = 0.2'],
        ),
        (('"reno"', '"bbr"'), ['congestion control "bbr"']),
        (('"pfifo", limit', '"codel", limit'), ['queue discipline "codel"']),
        (("sack = true", "sack = false"), []),
        (('sack = true\ntimestamps = true\n[record]\ninterval = "50ms"\n[[flows]]\ncount = 4\ncongestion = "reno"',
          'sack = false\n[[flows]]\ncongestion = "vegas"'), ['"vegas" without SACK']),
        (('"reno"', '"reno"\nsize = "1499B"'), ["transfers that are no whole number of segments"]),
    ],
)  # fmt: skip
def test_unsupported_features_are_reported(change, what):
    result = reasons_of(change)
    assert result[: len(what)] == what if len(what) > 1 else result == what


def test_what_it_has_not_is_not_run():
    with pytest.raises(UnsupportedError, match="RACK"):
        engines.engine("ns2").run(plan(('stack = "ns2"\nsack = true\ntimestamps = true', "")), 1)


def test_without_the_program_its_package_is_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert engines.unavailable("ns2") == "there is no ns-2; Debian has it as the package ns2"
    with pytest.raises(SimulatorError, match="the package ns2"):
        engines.engine("ns2").run(plan(), 1)


def test_packets_have_the_size_of_the_plan():
    text = script.tcl(plan(), 1)
    # A segment of 1000 bytes with 40 of headers and 12 of timestamps, of which ns-2 adds 50; 14 of the frame.
    assert re.search(r"packetSize_ (\d+)\n", text)[1] == str(1000 + 52 - 50 + 14)
    # Of a queue for one more is told than may wait.
    limit_p = plan().links[0].queue.parameters["limit_packets"]
    assert f"limit_ {limit_p + 1}\n" in text


def test_a_name_is_a_comment_and_no_command():
    text = script.tcl(plan(('"Four flows"', r"'a [exec touch x]; {\'")), 1)
    assert text.split("\n")[0] == "# a  exec touch x ;: for ns-2 2.35, seed 1."


def test_starts_are_drawn_from_the_seed():
    drawn = plan(("count = 4", 'count = 4\nstart = { at = "0s", jitter = "1s" }'))
    first, again, other = (script.tcl(drawn, seed) for seed in (1, 1, 2))
    assert first == again
    starts = re.findall(r"^flow \d+ \d+ \S+ \S+ (\S+)", first, re.MULTILINE)
    assert len(set(starts)) == 4
    assert all(0 <= float(start_s) <= 1 for start_s in starts)
    assert starts != re.findall(r"^flow \d+ \d+ \S+ \S+ (\S+)", other, re.MULTILINE)


@pytest.fixture(scope="module")
def result():
    return engines.engine("ns2").run(plan(), 1)


@requires_ns2
def test_it_fills_the_tables(result):
    for table in ("flows", "flow_samples", "queue_samples", "events", "links"):
        frame = result.frame(table)
        assert frame.height > 0
        assert frame.schema == tables.schema(table)
    assert result.flows["flow"].to_list() == [0, 1, 2, 3]
    assert result.flow_samples.height == pytest.approx(4 * 800, abs=4)
    assert result.flow_samples["delivered_bytes"].to_numpy().max() <= result.flows["delivered_bytes"].to_numpy().max()


@requires_ns2
def test_packets_are_conserved(result):
    link = result.links.row(0, named=True)
    waiting = result.queue_samples["backlog_p"].to_list()[-1]
    left = link["arrived_total_p"] - link["dropped_total_p"] - link["departed_total_p"]
    assert left == pytest.approx(waiting, abs=10)
    drops = result.events.filter(result.events["kind"] == "drop")
    assert drops.height == link["dropped_total_p"] == result.flows["dropped_packets"].sum()


@requires_ns2
def test_byte_counters_do_not_wrap():
    """ns-2's own counter is negative from 2 GiB on."""
    large = [('rate = "10Mbit"\nrtt = "40ms"', 'rate = "10Gbit"\nrtt = "4ms"'), ("50ms", "2.2s")]
    planned = plan(*large, ('duration = "40s"\nwarmup = "10s"', 'duration = "2.2s"'))
    data = engines.engine("ns2").run(planned, 1)
    (link,) = data.links.to_dicts()
    assert link["departed_bytes"] > 2**31
    assert link["departed_bytes"] == pytest.approx(planned.packet_bytes * link["departed_p"], rel=0.01)
    assert 0.5 < data.metrics()["summary"]["utilisation"]["mean"] <= 1.0


@requires_ns2
def test_cuts_of_windows_are_events(result):
    kinds = result.events["kind"].to_list()
    assert kinds.count("timeout") == result.flows["timeouts"].sum()
    ours = engines.engine("packet").run(plan(), 1).events["kind"].to_list()
    assert kinds.count("recovery") == pytest.approx(ours.count("recovery"), rel=0.2)


@requires_ns2
def test_the_same_seed_gives_the_same_bytes(result):
    again = engines.engine("ns2").run(plan(), 1)
    for table in ("flows", "flow_samples", "queue_samples", "events", "links"):
        assert again.frame(table).equals(result.frame(table))


@requires_ns2
@pytest.mark.parametrize("control", ['"reno"', '{ kind = "cubic", slow_start = "standard" }', '"westwood"'])
def test_it_agrees_with_the_packet_engine(control):
    """The same TCP: goodput within 2 %, the mean queueing delay within 10 %."""
    planned = plan(('"reno"', control))
    ours, theirs = (engines.engine(name).run(planned, 1).metrics()["summary"] for name in ("packet", "ns2"))
    assert theirs["goodput_bps"]["mean"] == pytest.approx(ours["goodput_bps"]["mean"], rel=0.02)
    assert theirs["queue_delay_mean_s"]["mean"] == pytest.approx(ours["queue_delay_mean_s"]["mean"], rel=0.10)


@requires_ns2
def test_a_transfer_ends_when_its_last_packet_is_acknowledged():
    short = plan(
        ("count = 4", 'size = "100kB"'), ('duration = "40s"\nwarmup = "10s"', 'duration = "5s"\nwarmup = "0s"')
    )
    (ours,), (theirs,) = (engines.engine(name).run(short, 1).flows.to_dicts() for name in ("packet", "ns2"))
    assert theirs["delivered_bytes"] == ours["delivered_bytes"] == 100_000
    assert theirs["fct_s"] == pytest.approx(ours["fct_s"], abs=1e-3)


@requires_ns2
def test_red_drops_early():
    red = '"red", limit = "1bdp", min = "10KB", max = "30KB", probability = 0.1'
    data = engines.engine("ns2").run(plan(('"pfifo", limit = "1bdp"', red)), 1)
    (link,) = data.links.to_dicts()
    assert 5 < link["backlog_mean_p"] < 30
    assert link["dropped_p"] > 0
    ours = engines.engine("packet").run(plan(('"pfifo", limit = "1bdp"', red)), 1).links.row(0, named=True)
    assert link["backlog_mean_p"] == pytest.approx(ours["backlog_mean_p"], rel=0.15)


@requires_ns2
def test_both_directions_of_an_asymmetric_link():
    text = """
    name = "Up and down"
    duration = "20s"
    seeds = [1]
    [network]
    topology = "asymmetric"
    down = { rate = "10Mbit", delay = "30ms", queue = { discipline = "pfifo", limit = "50p" } }
    up = { rate = "1Mbit", delay = "30ms", queue = { discipline = "pfifo", limit = "20p" } }
    [tcp]
    stack = "ns2"
    [[flows]]
    congestion = "reno"
    direction = "down"
    [[flows]]
    congestion = "reno"
    direction = "up"
    """
    planned = ac.loads(text).plan()
    data = engines.engine("ns2").run(planned, 1)
    assert set(data.links["link"]) == {hop.link for flow in planned.flows for hop in flow.forward.hops}
    assert all(delivered > 0 for delivered in data.flows["delivered_bytes"])


def mixed(*changes: tuple[str, str]) -> Plan:
    return ac.loads(changed(MIXED, *changes)).plan()


def test_traffic_of_all_kinds_is_taken():
    assert engines.engine("ns2").unsupported(mixed()) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("loss = { probability = 0.002 }", "loss = { every = 100 }"), "loss of every n-th packet of a flow"),
        (("0.002 }", "0.002, syn = 0.1 }"), "a loss of SYNs of its own"),
        (('rate = "8Mbit" }', "up = false }"), "links that fail"),
        (('mean = "10KB" }\n[[traffic]]', 'mean = "10KB" }\nrequest = "100B"\n[[traffic]]'),
         "generated traffic with requests"),
    ],
)  # fmt: skip
def test_unsupported_traffic_and_losses_are_reported(change, what):
    assert [reason.what for reason in engines.engine("ns2").unsupported(mixed(change))] == [what]


@requires_ns2
def test_transfers_and_datagrams_are_those_of_the_packet_engine():
    """Begun at the same times with the same sizes; losses, delays and completion times are of the same kind."""
    ours, theirs = (engines.engine(name).run(mixed(), 1) for name in ("packet", "ns2"))
    first, second = (data.flows.filter(data.flows["group"] < 3) for data in (ours, theirs))
    assert second["start_s"].to_list() == pytest.approx(first["start_s"].to_list(), abs=1e-9)
    assert second["size_bytes"].to_list() == first["size_bytes"].to_list()
    assert second["congestion"].to_list() == first["congestion"].to_list()
    udp, expected = (data.flows.row(3, named=True) for data in (theirs, ours))
    assert (udp["sent_packets"], udp["sent_bytes"]) == (expected["sent_packets"], expected["sent_bytes"])
    assert udp["delivered_bytes"] == pytest.approx(expected["delivered_bytes"], rel=0.02)
    loops = [data.flows.filter(data.flows["group"] == 3) for data in (theirs, ours)]
    assert loops[0].height == pytest.approx(loops[1].height, rel=0.3)
    done = [data.flows["fct_s"].median() for data in (theirs, ours)]
    assert done[0] == pytest.approx(done[1], rel=0.2)
    link = theirs.links.row(0, named=True)
    assert link["lost_total_p"] == (theirs.events["kind"] == "loss").sum() == pytest.approx(30, abs=20)
    assert link["busy_s"] is None
    assert theirs.metrics()["summary"]["goodput_bps"]["mean"] == pytest.approx(
        ours.metrics()["summary"]["goodput_bps"]["mean"], rel=0.05
    )


@requires_ns2
def test_a_transfer_that_begins_during_the_run_is_in_slow_start_as_long_as_others():
    # 600 packets over a round trip that holds 200 of them: with a first threshold of 20, ns-2's own for such agents,
    # they would take three times as long.
    text = (
        TEXT.replace('"10Mbit"', '"60Mbit"')
        .split("[[flows]]")[0]
        .replace('duration = "40s"\nwarmup = "10s"', 'duration = "20s"')
    )
    text += '[[traffic]]\nkind = "sources"\ntransfers = 4\nthink = "500ms"\ncongestion = "reno"\nsize = "876000B"\n'
    ours, theirs = (engines.engine(name).run(ac.loads(text).plan(), 1).flows for name in ("packet", "ns2"))
    assert theirs["fct_s"].null_count() == ours["fct_s"].null_count() == 0
    assert theirs.height == ours.height == 4
    assert theirs["fct_s"].to_list() == pytest.approx(ours["fct_s"].to_list(), rel=0.03)


@requires_ns2
def test_red_marks_where_senders_are_ecn_capable():
    red = '"red", limit = "2bdp", min = "10KB", max = "30KB", probability = 0.1, ecn = true, harddrop = true'
    marking = plan(('"pfifo", limit = "1bdp"', red), ("sack = true", 'sack = true\necn = "classic"'))
    assert engines.engine("ns2").unsupported(marking) == []
    theirs, ours = (engines.engine(name).run(marking, 1).links.row(0, named=True) for name in ("ns2", "packet"))
    assert theirs["marked_p"] == pytest.approx(ours["marked_p"], rel=0.15)
    assert theirs["dropped_p"] <= 0.1 * theirs["marked_p"]
    assert theirs["backlog_mean_p"] == pytest.approx(ours["backlog_mean_p"], rel=0.15)
