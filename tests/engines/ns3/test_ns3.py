"""ns-3: what it cannot do, and that it agrees with the packet engine where both mean the same TCP."""

from __future__ import annotations

import mixed
import pytest
from changed import changed
from small_networks import NS_TCP, dumbbell

import ackclock as ac
from ackclock import engines
from ackclock.dataset import tables
from ackclock.engines.external import SimulatorError
from ackclock.engines.ns3 import HEADER, program
from ackclock.errors import UnsupportedError
from ackclock.plan import Plan

requires_ns3 = pytest.mark.skipif(
    bool(engines.unavailable("ns3")), reason="needs ns-3 (Debian's packages g++ and libns3-dev)"
)

TEXT = f"""
name = "Three flows"
duration = "20s"
warmup = "5s"
seeds = [1]
{dumbbell("10Mbit", "40ms")}
{NS_TCP}\
[[flows]]
count = 2
congestion = "reno"
start = {{ every = "100ms" }}
[[flows]]
congestion = "reno"
size = "100kB"
start = "1s"
"""


def plan(*changes: tuple[str, str]) -> Plan:
    return ac.loads(changed(TEXT, *changes)).plan()


def reasons_of(*changes: tuple[str, str]) -> list[str]:
    return [reason.what for reason in engines.engine("ns3").unsupported(plan(*changes))]


def test_the_default_stack_is_rejected_with_the_one_that_it_has():
    default = plan(('[tcp]\nstack = "ns2"\nsack = true\ntimestamps = true\n', ""))
    first, *others = map(str, engines.unsupported(engines.engine("ns3"), default))
    assert first.endswith('; [tcp] stack = "ns2" with sack = true is a TCP that it has')
    assert all("[tcp]" not in other for other in others)


def test_a_plan_for_the_tcp_of_old_simulators_is_fully_supported():
    assert reasons_of() == []
    cubic = '{ kind = "cubic", reno_friendly = false }'
    assert reasons_of(('"reno"', cubic), ('"pfifo", limit = "1bdp"', '"codel", limit = "100p"')) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (('stack = "ns2"\nsack = true\ntimestamps = true', ""), ["RACK", "tail loss probes", "undone reductions"]),
        (('"reno"', '"cubic"'), ['congestion control "cubic" with reno_friendly = true']),
        (('"reno"', '"compound"'), ['congestion control "compound"']),
        (('"pfifo", limit', '"sfq", limit'), ['queue discipline "sfq"']),
        (
            ('"pfifo", limit = "1bdp"', '"red", limit = "1bdp", adaptive = true'),
            ['queue discipline "red" with adaptive'],
        ),
        (
            ("[tcp]", 'changes = [{ at = "1s", link = "bottleneck", up = false }]\n[tcp]'),
            ["links that fail, or whose delay changes"],
        ),
        (("[tcp]", "loss = { every = 100 }\n[tcp]"), ["loss of every n-th packet of a flow"]),
        (("[tcp]", 'frame_overhead = "0B"\n[tcp]'), ["frames of less than 2 B"]),
    ],
)
def test_unsupported_features_are_reported(change, what):
    assert reasons_of(change)[: len(what)] == what


def test_what_it_has_not_is_not_run():
    with pytest.raises(UnsupportedError, match="RACK"):
        engines.engine("ns3").run(plan(('stack = "ns2"\nsack = true\ntimestamps = true', "")), 1)


def test_without_the_libraries_their_packages_are_named(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert engines.unavailable("ns3") == "there is no ns-3; Debian has what it needs in the packages g++ and libns3-dev"
    with pytest.raises(SimulatorError, match="libns3-dev"):
        engines.engine("ns3").run(plan(), 1)
    assert HEADER.is_absolute()


def test_the_rate_makes_up_for_frames_that_are_shorter():
    text = program.cpp(plan(), 1)
    # 1052 bytes of packet: 14 of frame in the plan, 2 in ns-3.
    assert f"rate = {1e7 * (1052 + 2) / (1052 + 14):.12g}," in text


def test_a_name_is_a_comment_and_no_code():
    text = program.cpp(plan(('"Three flows"', "'x */ #include <x> \\\\'")), 1)
    assert text.split("\n")[0] == "// x  /  include  x: for ns-3.37, seed 1."


def test_a_network_that_marks_is_taken():
    marks = '"red", limit = "1bdp", ecn = true, harddrop = true'
    changes = ('"pfifo", limit = "1bdp"', marks), ("sack = true", 'sack = true\necn = "classic"')
    assert reasons_of(*changes) == []
    text = program.cpp(plan(*changes), 1)
    assert 'SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"))' in text
    assert '"UseHardDrop", StringValue("true")' in text


#: The scenario, but shorter and with one RTT.
MIXED = changed(
    mixed.MIXED,
    ('"15s"', '"8s"'),
    ('"3s"', '"2s"'),
    ('"10s"', '"5s"'),
    ('[[flows]]\ncongestion = "reno"\nrtt = "80ms"\n', ""),
)


@requires_ns3
def test_transfers_and_datagrams_are_those_of_the_packet_engine():
    mixed = ac.loads(MIXED).plan()
    theirs, ours = (engines.engine(name).run(mixed, 1) for name in ("ns3", "packet"))
    first, second = (data.flows.filter(data.flows["group"] < 3) for data in (ours, theirs))
    assert second["start_s"].to_list() == pytest.approx(first["start_s"].to_list(), abs=1e-8)
    assert second["size_bytes"].to_list() == first["size_bytes"].to_list()
    udp, expected = (data.flows.row(2, named=True) for data in (theirs, ours))
    assert udp["sent_packets"] == expected["sent_packets"]
    assert udp["delivered_bytes"] == pytest.approx(expected["delivered_bytes"], rel=0.03)
    loops = [data.flows.filter(data.flows["group"] == 3).height for data in (theirs, ours)]
    assert loops[0] == pytest.approx(loops[1], rel=0.4)
    kinds = theirs.events["kind"].to_list()
    assert kinds.count("loss") == theirs.links["lost_total_p"][0] == pytest.approx(16, abs=14)
    assert kinds.count("drop") == theirs.links["dropped_total_p"][0]
    assert kinds.count("finished") > 0.8 * (ours.events["kind"] == "finished").sum()
    assert theirs.flows["dropped_packets"].sum() == kinds.count("loss") + kinds.count("drop")


@requires_ns3
def test_a_run_fills_the_tables_and_agrees_with_the_packet_engine():
    """Goodput within 2 %, the mean queueing delay within 15 %: each has its own way through a recovery."""
    planned = plan()
    theirs, ours = (engines.engine(name).run(planned, 1) for name in ("ns3", "packet"))
    for table in ("flows", "flow_samples", "queue_samples", "events", "links"):
        frame = theirs.frame(table)
        assert frame.height > 0
        assert frame.schema == tables.schema(table)
    found, expected = (data.metrics()["summary"] for data in (theirs, ours))
    assert found["goodput_bps"]["mean"] == pytest.approx(expected["goodput_bps"]["mean"], rel=0.02)
    assert found["queue_delay_mean_s"]["mean"] == pytest.approx(expected["queue_delay_mean_s"]["mean"], rel=0.15)
    assert found["utilisation"]["mean"] == pytest.approx(1.0, abs=0.01)
    assert theirs.flows["delivered_bytes"][2] == 100_000
    assert theirs.flows["fct_s"][2] == pytest.approx(ours.flows["fct_s"][2], rel=0.3)
    drops = theirs.events.filter(theirs.events["kind"] == "drop")
    assert drops.height == theirs.links["dropped_total_p"][0] == theirs.flows["dropped_packets"].sum()


@requires_ns3
def test_bbr_with_and_without_reno():
    alone = (('count = 2\ncongestion = "reno"', 'count = 2\ncongestion = "bbr"'), ("1bdp", "2bdp"))
    beside = (('congestion = "reno"\nsize = "100kB"', 'count = 2\ncongestion = "reno"'),)
    shares = []
    for changes in (alone, alone + beside):
        planned = plan(*changes)
        theirs, ours = (engines.engine(name).run(planned, 1) for name in ("ns3", "packet"))
        delivered = [data.flows["delivered_bytes"] for data in (theirs, ours)]
        shares.append([bytes_[:2].sum() / bytes_.sum() for bytes_ in delivered])
        found, expected = (data.metrics()["summary"] for data in (theirs, ours))
        assert found["goodput_bps"]["mean"] == pytest.approx(expected["goodput_bps"]["mean"], rel=0.02)
    assert found["timeouts"]["mean"] > 0 == expected["timeouts"]["mean"]
    assert shares[0] == pytest.approx([1.0, 1.0], abs=0.02)
    assert shares[1][0] < shares[1][1]
