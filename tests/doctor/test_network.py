"""Findings on a network from made-up figures; arithmetic of orders and results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ackclock.doctor import network
from ackclock.doctor.network import Network, TestPlan, endpoints, test_matrix, transfers
from ackclock.doctor.network.endpoints import THIS, Address, CpuTime, Endpoint
from ackclock.doctor.network.test_matrix import FILE, FROM, MEMORY, REMOTE, TO, Cell, CellResult
from ackclock.doctor.network.test_matrix import LOCAL as LOCAL_SIDE
from ackclock.doctor.settings import Settings
from ackclock.engines.linux.testbed.preflight import OFFLOADS, Facts
from ackclock.errors import InputError
from ackclock.hosts.clocks import Offset

SYSCTLS = {
    "ipv4.tcp_rmem": "4096 131072 6291456",
    "ipv4.tcp_wmem": "4096 16384 4194304",
    "ipv4.tcp_congestion_control": "cubic",
    "ipv4.tcp_sack": "1",
    "ipv4.tcp_no_metrics_save": "0",
}
ROW = {
    "goodput_bps": 95e6,
    "rtt_idle_s": 0.020,
    "rtt_loaded_s": 0.022,
    "rtt_loaded_p95_s": 0.024,
    "retransmitted": 0.0,
    "lost": 0.0,
    "receive_window": 0.0,
    "send_buffer": 0.0,
    "congestion_window": 1.0,
    "busy": {THIS: 0.1, "alice": 0.2},
    "medium": MEMORY,
}


def side(name: str, address: str, **sysctls: str) -> Endpoint:
    facts = Facts(
        root=True, taken=False, release="6.1", machine="x86_64", missing=[], controls=frozenset(), allowed=frozenset(),
        forwards=False, clock="tsc", tick_hz=1e9, cores=4, load=0.1, offset=Offset(0, 0, 0),
        interfaces={"eth0": {"mtu": 1500}}, data="eth0", offloads={"eth0": list(OFFLOADS)},
    )  # fmt: skip
    valid = {**SYSCTLS, **{f"ipv4.{key}": value for key, value in sysctls.items()}}
    return Endpoint(name, Address(address, address), facts, Settings(name, "6.1", 4, False, valid, {"eth0": 1e9}), True)


LOCAL, ALICE = side(THIS, "10.0.0.1"), side("alice", "10.0.0.2")


def row(direction: str = TO, flows: int = 1, **more: Any) -> dict[str, Any]:
    return {"repeat": 0, "direction": direction, "flows": flows, "connected": flows, **ROW, **more}


def message(*rows: dict[str, Any], here: Endpoint = LOCAL, alice: Endpoint = ALICE) -> dict[str, bool]:
    """Sentences, and whether each is bad."""
    result = [CellResult.of(Cell(each["direction"], each["flows"]), [each]) for each in rows]
    return {finding.sentence: finding.bad for finding in network.findings(result, (here, alice))}


def test_a_path_that_is_full_is_the_path():
    assert message(row()) == {
        "From this host to alice one flow got 95.0 Mb/s; the congestion window held it back for 100 % of the time: the "
        "path, or who else is on it.": False
    }


def test_the_receive_window_is_the_receivers_buffer():
    ((sentence, bad),) = message(
        row(FROM, receive_window=0.82, congestion_window=0.18),
        here=side(THIS, "10.0.0.1", tcp_rmem="4096 131072 262144"),
    ).items()
    assert sentence == (
        "The receive window held one flow from alice to this host back for 82.0 % of the time: net.ipv4.tcp_rmem of "
        "this host lets a connection buffer 262 kB, and each got 95.0 Mb/s over a round trip of 22.0 ms."
    )
    assert bad


def test_the_send_buffer_is_the_senders():
    sentences = message(row(send_buffer=0.3, congestion_window=0.7))
    (sentence,) = [each for each in sentences if "send buffer" in each]
    assert "net.ipv4.tcp_wmem of this host lets a connection buffer 4.19 MB" in sentence
    assert not sentences[sentence]


def test_a_buffer_that_does_not_grow_is_let_grow():
    alice = side("alice", "10.0.0.2", tcp_moderate_rcvbuf="0")
    result = [CellResult.of(Cell(TO, 1), [row(receive_window=0.9, congestion_window=0.1)])]
    advice = [each.next for each in network.findings(result, (LOCAL, alice))]
    assert "On alice: sysctl -w net.ipv4.tcp_moderate_rcvbuf=1, so that the buffer grows with the path." in advice


@pytest.mark.parametrize(("loaded_s", "bad"), [(0.024, None), (0.06, False), (0.25, True)])
def test_a_queue_is_named_with_what_waits_in_it(loaded_s: float, bad: bool | None):
    result = {each: is_bad for each, is_bad in message(row(rtt_loaded_s=loaded_s)).items() if "wait" in each}
    assert list(result.values()) == ([] if bad is None else [bad])
    if bad is False:
        assert "grows from 20.0 ms to 60.0 ms: about 475 kB wait in a queue on the path" in next(iter(result))


def test_one_flow_gets_less_than_several():
    several = row(flows=10, goodput_bps=900e6)
    one = row(receive_window=0.9, congestion_window=0.1)
    (sentence,) = [each for each in message(one, several) if "one flow gets" in each]
    assert sentence == (
        "From this host to alice one flow gets 95.0 Mb/s, 10 flows get 900 Mb/s: what holds the one back is its "
        "receive window (90.0 % of the time), not the link."
    )


def test_losses_and_missing_connections_are_named():
    result = message(row(flows=10, connected=7, retransmitted=0.02, lost=0.025))
    assert result["With 10 flows, this host retransmitted 2.00 % of its packets to alice; 2.50 % did not arrive."]
    assert result["Of the transfers of 10 flows to the other host, 3 had no connection by their end."]


def test_a_host_without_a_free_processor_explains_more_than_its_path():
    result = message(row(busy={THIS: 0.1, "alice": 0.97}))
    assert list(result) == [
        "The processors of alice were busy for 97.0 % of the time with one flow: what was measured may be the host's "
        "speed, not the network's."
    ]


def test_offloads_of_real_interfaces_are_named():
    bare = replace(ALICE.facts, offloads={"eth0": []})
    (sentence,) = [each for each in message(row(), alice=replace(ALICE, facts=bare)) if "eth0" in each]
    assert sentence.startswith(
        "On alice, eth0 has neither generic-receive-offload nor large-receive-offload on: as rec"
    )
    assert not [each for each in message(row(), alice=replace(ALICE, facts=bare, hardware=False)) if "eth0" in each]


def test_switches_and_memory_of_both_hosts_are_named():
    alice = side("alice", "10.0.0.2", tcp_sack="0")
    result = message(row(), alice=replace(alice, facts=replace(alice.facts, root=False)))
    assert "On alice, net.ipv4.tcp_sack is off: of several losses in one round trip, one is repaired in each." in result
    assert any(each.startswith("Without root on alice its kernel kept its peer") for each in result)


def test_means_have_intervals_over_the_repeats():
    requested = TestPlan("alice", (1, 4), (TO,), repeats=2)
    rows = (row(goodput_bps=90e6), row(flows=4), row(goodput_bps=100e6), row(flows=4, connected=3))
    one, four = Network(requested, (LOCAL, ALICE), rows, None).as_dict()["cells"]  # type: ignore[arg-type]
    assert (one["goodput_bps"]["mean"], one["goodput_bps"]["n"]) == (95e6, 2)
    assert one["goodput_bps"]["ci95_high"] == pytest.approx(95e6 + 12.706 * 5e6, rel=1e-4)
    assert (one["retransmitted"]["ci95_high"], one["congestion_window"]["ci95_low"]) == (0.0, 1.0)
    assert four["unconnected"] == 1


def test_turns_are_drawn_and_always_the_same():
    requested = TestPlan("alice", (1, 2, 5, 10), repeats=3)
    order = transfers._schedule(requested)
    assert order == transfers._schedule(requested)
    repeats = [[cell for number, cell in order if number == repeat] for repeat in range(3)]
    assert all(sorted(map(str, each)) == sorted(map(str, requested.cells())) for each in repeats)
    assert repeats[0] != repeats[1]


@pytest.mark.parametrize("listen", [test_matrix.REMOTE, test_matrix.LOCAL])
@pytest.mark.parametrize("direction", [TO, FROM])
def test_one_side_listens_whichever_way_the_data_go(listen: str, direction: str):
    """Each host binds its own address, and knows its peer by the one that is seen."""
    inside = replace(LOCAL, address=Address("192.168.0.7", "198.51.100.1"))
    pair = transfers.Pair((inside, ALICE), {})
    orders = [
        transfers._order(TestPlan("alice", server=listen), pair, Cell(direction, 3), 0, 5001, of)
        for of in pair.endpoints
    ]
    sender, receiver = (THIS, "alice") if direction == TO else ("alice", THIS)
    for order, of_this in zip(orders, ("192.168.0.7", "198.51.100.1"), strict=True):
        (way, *_), (flow, *_) = order["flows"], order["plan"]["flows"]
        assert (way["source"]["namespace"], way["destination"]["namespace"]) == (sender, receiver)
        assert {way["source"]["address"], way["destination"]["address"]} == {of_this, "10.0.0.2"}
        server = receiver if flow["request_bytes"] is None else sender
        assert server == ("alice" if listen == test_matrix.REMOTE else THIS)


def test_a_transfer_in_numbers():
    tables = {
        "flows": {
            "measured_bytes": np.array([10_000_000, 5_000_000]),
            "measured_sent_packets": np.array([9000, 1000]),
            "measured_retransmissions": np.array([90, 10]),
            "sent_packets": np.array([10_000, 2000]),
            "received_packets": np.array([9900, 1930]),
            "established_s": np.array([0.02, np.nan]),
            "timeouts": np.array([1, 0]),
        },
        "limits": {
            "busy_s": np.array([5.0, 5.0]),
            "window_limited_s": np.array([4.0, 0.0]),
            "buffer_limited_s": np.array([0.0, 1.0]),
            "least_rtt_s": np.array([0.02, np.nan]),
        },
        "flow_samples": {
            "time_s": np.array([0.5, 2.0, 5.0, 5.0]),
            "srtt_s": np.array([0.02, 0.03, 0.05, np.nan]),
            "in_flight": np.array([10.0, 20.0, 40.0, 10.0]),
        },
    }
    result = transfers._figures(TestPlan("alice", duration_s=5.0), tables)
    assert result["goodput_bps"] == pytest.approx(8 * 15e6 / 4)
    assert (result["connected"], result["timeouts"], result["rtt_idle_s"]) == (1, 1, 0.02)
    assert result["rtt_loaded_s"] == pytest.approx(0.04)
    assert result["retransmitted"] == pytest.approx(0.01)
    assert result["lost"] == pytest.approx((12_000 - 11_830 - 50) / 12_000)
    limits = [result[name] for name in test_matrix.LIMITS]
    assert limits == pytest.approx([0.4, 0.1, 0.5])


def test_a_transfer_that_never_began_has_no_figures():
    one = np.array([0])
    names = ("measured_bytes", "measured_sent_packets", "measured_retransmissions", "sent_packets", "received_packets")
    flows = dict.fromkeys((*names, "timeouts"), one) | {"established_s": np.array([np.nan])}
    result = transfers._figures(TestPlan("alice"), {"flows": flows})
    assert (result["connected"], result["goodput_bps"]) == (0, 0.0)
    assert [result[name] for name in ("rtt_idle_s", "rtt_loaded_s", "lost", *test_matrix.LIMITS)] == [None] * 6


def test_a_processor_with_the_kernels_work_is_busy_and_one_of_others_is_not():
    before = CpuTime((0.0, 0.0), (0.0, 0.0))
    assert CpuTime((5.0, 0.0), (5.0, 0.0)).busy(before, 5.0) == 1.0
    assert CpuTime((5.0, 0.0), (1.0, 0.0)).busy(before, 5.0) == 0.5
    assert CpuTime((5.0, 4.0), (0.0, 0.0)).busy(before, 5.0) == pytest.approx(0.9)


@pytest.mark.parametrize("given", ["alice", "10.0.0", "10.0.0.1,", "10.0.0.1,10.0.0.2,10.0.0.3", "fe80::1"])
def test_addresses_are_of_ipv4(given: str):
    with pytest.raises(InputError, match="--addresses: found .*; expected --addresses LOCAL,REMOTE: IPv4"):
        endpoints.checked(given.split(","))


def reported(memory_bps: float, file_bps: float, **waits: float) -> tuple[str, bool, str]:
    """Return the findings on a transfer from a local disk to a disk of alice."""
    rows = (
        row(goodput_bps=memory_bps),
        row(goodput_bps=file_bps, medium=FILE, waits={THIS: 0.0, "alice": 0.0} | waits),
    )
    result = [CellResult.of(Cell(TO, 1, each["medium"]), [each]) for each in rows]
    places = {LOCAL_SIDE: "/here", REMOTE: "/there"}
    (finding,) = endpoints.disk_findings(result, (LOCAL, ALICE), places)
    return finding.sentence, finding.bad, finding.next


def test_a_disk_that_is_waited_for_holds_transfers_back():
    assert reported(900e6, 300e6, alice=0.85) == (
        "From this host to alice one flow got 300 Mb/s with a file, 900 Mb/s without: the disk holds the transfer "
        "back; alice waited for its disk for 85.0 % of the time.",
        True,
        "What that disk can do: ackclock doctor host disk /there, on alice.",
    )


def test_a_disk_that_is_fast_enough_leaves_it_to_the_path():
    message, bad, _ = reported(95e6, 94e6, alice=0.1)
    assert message.endswith("not the disk but the path is the limit; alice waited for its disk for 10.0 % of the time.")
    assert not bad
    message, bad, _ = reported(900e6, 600e6, alice=0.3)
    assert message.endswith(
        "disk and network take turns in one program; alice waited for its disk for 30.0 % of the time."
    )
    assert not bad
    # All that waits is not slow: a disk that is waited for all the time, and is as fast as the memory, holds nothing.
    assert not reported(95e6, 94e6, alice=0.9)[1]


@pytest.mark.parametrize(
    ("room", "message"),
    [
        ({"free_bytes": 10**8, "file_bytes": None, "why": None}, "found 100 MB of room; expected 168 MB or more"),
        ({"free_bytes": 10**12, "file_bytes": 0, "why": None}, "found an empty file; expected one with data"),
    ],
)
def test_a_disk_without_room_is_rejected(room: dict[str, Any], message: str):
    requested = TestPlan("alice", files={REMOTE: "/there"})
    with pytest.raises(InputError) as error:
        endpoints.stores(requested, {"alice": Roomy(room)})  # type: ignore[dict-item]
    assert str(error.value) == f'host "alice": --file: /there: {message}'


def test_a_tenth_of_the_room_is_taken_at_maximum():
    requested = TestPlan("alice", files={REMOTE: "/there"})
    room = {"free_bytes": 10**9, "file_bytes": None, "why": None}
    store = endpoints.stores(requested, {"alice": Roomy(room)})["alice"]  # type: ignore[dict-item]
    assert store.source["bytes"] + store.sink["bytes"] <= 10**8
    room["file_bytes"] = 5 * 10**9
    assert endpoints.stores(requested, {"alice": Roomy(room)})["alice"].source["bytes"] == 5 * 10**9  # type: ignore[dict-item]


class Roomy:
    """An agent that knows one place."""

    def __init__(self, room: dict[str, Any]) -> None:
        self._room = room

    def disk_space(self, place: str) -> dict[str, Any]:
        assert place == "/there"
        return self._room
