"""Hosts of a testbed: their run specs, their missing requirements, and the merging of their tables."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from changed import changed
from small_networks import a_testbed, host_of_testbed, router_of_testbed

import ackclock as ac
from ackclock.engines.linux.testbed import layout, measuring, merge_tables, preflight, settings
from ackclock.engines.linux.testbed.preflight import Facts
from ackclock.hosts.clocks import Offset
from ackclock.plan import Plan

SENDER = host_of_testbed("a", "sender", "10.1.0.2")
#: The router's lines; a path that is left unchanged has none.
ROUTER = router_of_testbed()
TEXT = f"""
duration = "2s"
{a_testbed(SENDER, ROUTER, host_of_testbed("b", "receiver", "10.2.0.2"), host_of_testbed("c", "receiver", "10.2.0.3"))}\
[[flows]]
count = 3
congestion = "reno"
"""


def planned(*pairs: tuple[str, str]) -> tuple[Plan, layout.Testbed]:
    plan = ac.loads(changed(TEXT, *pairs)).plan()
    return plan, layout.Testbed.of(plan)


def complete_facts(**more: Any) -> Facts:
    """A host with all that is wanted."""
    found = Facts(
        root=True, taken=False, release="6.1", machine="x86_64", missing=[], controls=frozenset({"reno"}),
        allowed=frozenset(), forwards=True, clock="tsc", tick_hz=1e9, cores=4, load=0.0, offset=Offset(0, 0, 1),
        interfaces={"eth1": {"mtu": 1500}, "eth2": {"mtu": 1500}}, data="eth1",
        routes={"10.1.0.2": {"dev": "eth1", "gateway": "10.2.0.1"}},
    )  # fmt: skip
    return replace(found, **more)


class Willing:
    """An agent on a kernel that has everything, but for what a command with some word needs."""

    def __init__(self, lacks: str = "", comes_in: str = "") -> None:
        self.missing, self.comes_in = lacks, comes_in

    def run_commands(self, *commands: list[str], apart: bool = False) -> list[tuple[int, str, str]]:
        lines = [*map(" ".join, commands)]
        assert apart or lines == ["tc qdisc show dev eth1 ingress"]
        return [
            (int(bool(self.missing) and self.missing in line), "" if apart else self.comes_in, "") for line in lines
        ]


def missing(name: str, found: Facts, *pairs: tuple[str, str], agent: Willing | None = None) -> list[str]:
    plan, testbed = planned(*pairs)
    host = next(host for host in testbed.hosts if host.name == name)
    return [*preflight.missing(plan, testbed, host, found, agent or Willing())]  # type: ignore[arg-type]


def test_sources_take_senders_and_receivers_in_turn():
    plan, testbed = planned()
    ends = [(way.source.namespace, way.destination.namespace) for way in testbed.ways(plan).flows]
    assert ends == [("a", "b"), ("a", "c"), ("a", "b")]


def test_only_the_router_has_the_queue():
    plan, testbed = planned()
    told = {host.name: settings.run_spec(plan, 7, testbed, host, 10_000, 0) for host in testbed.hosts}
    queue = {"link": 0, "namespace": "r", "device": "eth2", "handle": "10:"}
    assert {name: order.pop("queues") for name, order in told.items()} == {"a": [], "r": [queue], "b": [], "c": []}
    assert {name: order.pop("here")["host"] for name, order in told.items()} == {name: name for name in told}
    assert all(order == told["a"] for order in told.values())


def test_router_settings_are_undone_by_the_root_qdisc():
    plan, testbed = planned()
    made = settings.router_commands(plan, testbed)
    assert [" ".join(step["undo"]) for step in made if step["undo"]] == [
        "tc qdisc del dev eth2 root",
        "tc qdisc del dev eth1 root",
    ]
    assert made[0]["undo"] and made[0]["run"][:6] == ["tc", "qdisc", "add", "dev", "eth2", "root"]
    assert " ".join(made[-1]["run"]).endswith("netem limit 1000000 delay 20ms")


def test_only_the_router_applies_timed_changes():
    text = '[[network.changes]]\nat = "1s"\nlink = "bottleneck"\n{}\n[[flows]]'
    changed = text.format('rate = "5Mbit"').replace("[[flows]]", text.format('delay = "5ms"'))
    plan, testbed = planned(("[[flows]]", changed))
    told = {host.name: settings.run_spec(plan, 7, testbed, host, 10_000, 0)["changes"] for host in testbed.hosts}
    assert told["a"] == told["b"] == told["c"] == []
    first, second = told["r"]
    assert (first["at_s"], first["rate_bps"], second["rate_bps"]) == (1.0, 5e6, 5e6)
    assert first["commands"][0].startswith("tc class change dev eth2 parent 1: classid 1:1 htb rate 5000000bit ")
    assert second["commands"] == ["tc qdisc change dev eth1 root handle 1: netem limit 1000000 delay 25ms"]


@pytest.mark.skipif(
    not shutil.which("tc") or subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode,
    reason="needs tc, and a network to throw away",
)
def test_tc_understands_the_delays():
    change = '[[network.changes]]\nat = "1s"\nlink = "bottleneck"\ndelay = "5.25ms"\n[[flows]]'
    plan, testbed = planned(("[[flows]]", change))
    (later,) = (one["commands"][0].split() for one in settings.router_changes(plan, testbed))
    for words in (settings.router_commands(plan, testbed)[-1]["run"], ["tc", "qdisc", "add", *later[3:]]):
        assert "netem" in words
        command = ["unshare", "-rn", *(word if word != "eth1" else "lo" for word in words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        # A kernel without netem says so after tc has read all words (tc-netem(8)), and tc names those it does not know.
        assert done.returncode == 0 or "qdisc kind is unknown" in done.stderr, done.stderr


def test_a_later_delay_is_set_up_at_the_beginning():
    change = '[[network.changes]]\nat = "1s"\nlink = "bottleneck"\ndelay = "5ms"\n[[flows]]'
    plan, testbed = planned(("[[flows]]", change), ('rtt = "20ms"', 'rtt = "0ms"'))
    assert " ".join(settings.router_commands(plan, testbed)[-1]["run"]).endswith("netem limit 1000000 delay 0s")


#: One packet of data of a hundred is lost.
LOSS = ('rtt = "20ms"', 'rtt = "20ms"\nloss = { probability = 0.01 }')


def test_what_is_lost_before_the_queue_goes_through_a_device_of_its_own():
    """Data for a receiver, as it comes in from the senders, loses a hundredth; SYNs and what is short pass."""
    plan, testbed = planned(LOSS)
    made = [" ".join(step["run"]) for step in settings.router_commands(plan, testbed)]
    first = made.index("ip link add ackclock-loss type ifb")
    assert made[first + 2].startswith("tc qdisc add dev ackclock-loss root handle 1: prio bands 3 ")
    netems = [line.split(" limit 1000000 ")[1] for line in made[first:] if "netem" in line]
    assert netems == ["loss 0%", "loss 0%", "loss 1%"]
    assert made[-2:] == [
        f"tc filter add dev eth1 parent ffff: protocol ip u32 match ip dst {data}/32 action mirred egress redirect "
        "dev ackclock-loss"
        for data in ("10.2.0.2", "10.2.0.3")
    ]
    undone = [" ".join(step["undo"]) for step in settings.router_commands(plan, testbed) if step["undo"]]
    assert undone[2:] == ["ip link del ackclock-loss", "tc qdisc del dev eth1 ingress"]


def test_only_the_router_counts_losses():
    plan, testbed = planned(LOSS)
    told = {host.name: settings.run_spec(plan, 7, testbed, host, 10_000, 0)["losses"] for host in testbed.hosts}
    lost = {"link": 0, "namespace": "r", "device": "ackclock-loss", "handle": "13:"}
    assert told == {"a": [], "r": [lost], "b": [], "c": []}


def test_a_later_loss_is_set_up_at_the_beginning():
    change = '[[network.changes]]\nat = "1s"\nlink = "bottleneck"\nloss = { probability = 0.02 }\n[[flows]]'
    plan, testbed = planned(("[[flows]]", change))
    made = [" ".join(step["run"]) for step in settings.router_commands(plan, testbed)]
    assert [line for line in made if line.endswith("loss 0%")][2:] == [
        "tc qdisc add dev ackclock-loss parent 1:3 handle 13: netem limit 1000000 loss 0%"
    ]
    (later,) = settings.router_changes(plan, testbed)
    assert later["commands"][-1] == (
        "tc qdisc change dev ackclock-loss parent 1:3 handle 13: netem limit 1000000 loss 2%"
    )


def test_nothing_is_lost_on_a_path_that_is_left():
    with pytest.raises(ac.InputError, match=r"network\.loss.*expected none, with existing_path = true"):
        planned(("queue =", "existing_path = true\nloss = { probability = 0.01 }\nqueue ="), (ROUTER, ""))


def beyonds(*pairs: tuple[str, str]) -> list[str]:
    plan, _ = planned(*pairs)
    return [*settings.unsupported(plan)]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            '[[network.changes]]\nat = "1s"\nlink = "bottleneck"\nup = false\n[[flows]]',
            ["links that fail, on a testbed"],
        ),
        (
            '[[network.changes]]\nat = "1s"\nlink = "bottleneck"\njitter = { deviation = "1ms" }\n[[flows]]',
            ["jitter, reordering, duplication or corruption on a testbed"],
        ),
        (
            '[[flows]]\ncongestion = "reno"\ntcp = { sack = false, initial_window = 4, mss = "500B" }\n[[flows]]',
            ['room for several values of tcp_sack, initcwnd on one host of a testbed ("a", "b")'],
        ),
        (
            '[[traffic]]\nkind = "incast"\nsenders = 2\nsize = "1KB"\nrounds = 3\ncongestion = "reno"\n'
            'request = "10B"\n[[flows]]',
            ["incast whose rounds wait for several receivers of a testbed"],
        ),
        (
            '[[traffic]]\nkind = "incast"\nsenders = 2\nsize = "1KB"\nrounds = 3\ncongestion = "reno"\n[[flows]]',
            [],
        ),
        (
            '[[traffic]]\nkind = "web"\nusers = 2\nsize = "1KB"\nobjects = 3\nthink = "1s"\n'
            'congestion = "reno"\n[[flows]]',
            [],
        ),
        ('[[traffic]]\nkind = "udp"\nrate = "10/s"\npacket = "100B"\n[[flows]]', []),
        (
            '[[flows]]\ncongestion = "reno"\ntcp = { processing = "30us" }\n[[flows]]',
            ["processing times of hosts other than the default, on a testbed"],
        ),
    ],
)
def test_what_no_host_can_hold_is_a_line(more: str, said: list[str]):
    assert beyonds(("[[flows]]", more)) == said


def test_hosts_of_their_own_hold_settings_of_their_own():
    """The second of three flows is the only one between b2 and c, so its settings are those of its hosts."""
    groups = '[[flows]]\ncongestion = "reno"\n[[flows]]\ncongestion = "reno"\ntcp = { sack = false }\n'
    before = '[[network.hosts]]\nname = "r"'
    sender = '[[network.hosts]]\nname = "a2"\naddress = "a2"\nrole = "sender"\ndata = "10.1.0.3"\n'
    plan, testbed = planned(('[[flows]]\ncount = 3\ncongestion = "reno"\n', groups), (before, sender + before))
    assert [*settings.unsupported(plan)] == []
    sacks = {host.name: settings.sysctls(plan, testbed, host).get("net.ipv4.tcp_sack") for host in testbed.hosts}
    assert sacks == {"a": "1", "a2": "0", "r": None, "b": "1", "c": "0"}


def test_packets_of_several_sizes_are_the_sockets_own():
    plan, testbed = planned(("[[flows]]", '[[flows]]\ncongestion = "reno"\ntcp = { mss = "500B" }\n[[flows]]'))
    assert [options["mss_bytes"] for options in settings.sockets(plan) if options] == [512, 1460]
    assert settings.metrics(plan, testbed, testbed.hosts[0], 1500) == {}
    plan, testbed = planned(("[[flows]]", '[tcp]\nmss = "500B"\n[[flows]]'))
    assert [options["mss_bytes"] for options in settings.sockets(plan) if options] == [None]
    assert settings.metrics(plan, testbed, testbed.hosts[0], 1500) == {"advmss": "512"}


def test_what_is_measured_is_in_the_plan():
    plan, _ = planned(('rtt = "20ms"', 'rtt = "measured"'))
    probe = measuring.probe(plan, {"cubic"})
    assert (len(probe.flows), probe.groups[0].congestion.kind if probe.groups[0].congestion else None) == (8, "cubic")
    limits = {"least_rtt_s": np.array([np.nan, 0.03, 0.02])}
    tables = [{"flows": {"measured_bytes": np.array([1_448_000, 724_000 * n])}, "limits": limits} for n in (1, 2, 3)]
    found = measuring.estimate_path(plan, tables)
    assert found.rates_bps == pytest.approx([8 * 1514 * count / 2 for count in (1500, 2000, 2500)])
    filled = measuring.filled(plan, found)
    assert filled.links == plan.links  # the router's rate is given
    assert (filled.mean_base_rtt_s, filled.flows[0].base_rtt_s, filled.flows[0].forward.delay_s) == (0.02, 0.02, 0.01)
    assert filled.options["testbed"]["measured"] == found.as_dict()
    assert filled.options["testbed"]["rtt_s"] is None  # what is measured is not added
    with pytest.raises(ac.InputError, match="found a path that cannot be measured: nothing arrived"):
        measuring.estimate_path(plan, [{"flows": {"measured_bytes": np.array([0])}, "limits": limits}])


def test_nothing_is_changed_without_root_and_routes_only_for_what_is_unusual():
    plan, testbed = planned()
    host = testbed.hosts[2]
    assert preflight.changes(plan, testbed, host, complete_facts(root=False)) == []
    assert not [
        step for step in preflight.changes(plan, testbed, host, complete_facts()) if "route" in step.get("run", ())
    ]
    plan, testbed = planned(("[[flows]]", "[tcp]\ninitial_window = 4\n[[flows]]"))
    (route,) = (
        step for step in preflight.changes(plan, testbed, host, complete_facts()) if "route" in step.get("run", ())
    )
    assert " ".join(route["run"]) == "ip route add 10.1.0.2/32 via 10.2.0.1 dev eth1 initcwnd 4"
    assert " ".join(route["undo"]) == "ip route del 10.1.0.2/32 via 10.2.0.1 dev eth1"


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("r", {"root": False}, "found no root; expected it, to set the router's rate and queue"),
        ("r", {"forwards": False}, "found no forwarding of IPv4; expected net.ipv4.ip_forward = 1"),
        (
            "r",
            {"qdiscs": {"eth2": "htb 1:"}},
            'found the queue discipline htb 1: on "eth2"; expected the kernel\'s own, which can be given back',
        ),
        (
            "r",
            {"tick_hz": 250.0},
            "found a clock of 250 ticks a second, with which netem delays at most 1.5 Mb/s; expected one that holds "
            "10 Mb/s",
        ),
        ("r", {"taken": True}, "found another run of ackclock at work; expected none"),
        ("b", {"missing": ["ip", "tc"]}, "found no iproute2; expected this Debian package"),
        ("b", {"routes": {}}, "found no route from 10.2.0.2 to 10.1.0.2; expected one by the router"),
        (
            "a",
            {"root": False, "routes": {"10.2.0.2": {}, "10.2.0.3": {}}},
            'found no root, and congestion control "reno" kept for it; expected either (it is not in '
            "net.ipv4.tcp_allowed_congestion_control)",
        ),
    ],
)
def test_each_missing_requirement_of_a_host_is_a_line(name: str, more: dict[str, Any], said: str):
    assert missing(name, complete_facts(**more)) == [said]


def test_a_complete_host_has_no_missing_requirement():
    assert missing("r", complete_facts()) == missing("b", complete_facts()) == []


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        (Willing("ifb"), "found no ifb devices in its kernel 6.1; expected it (modprobe ifb)"),
        (Willing("mirred"), 'found no action "mirred" in its kernel 6.1; expected it (modprobe act_mirred)'),
        (
            Willing(comes_in="qdisc clsact ffff: parent ffff:fff1 "),
            'found qdisc clsact ffff: on "eth1"; expected nothing where packets come in',
        ),
    ],
)
def test_a_routers_missing_requirement_for_losses_is_a_line(agent: Willing, said: str):
    assert missing("r", complete_facts(), LOSS, agent=agent) == [said]


def test_a_clock_of_250_ticks_holds_a_slow_link():
    assert missing("r", complete_facts(tick_hz=250.0), ("10Mbit", "1Mbit")) == []


def test_only_offloads_that_are_on_and_can_be_switched_are_switched():
    text = (
        "Features for eth0:\nrx-checksumming: on\ntcp-segmentation-offload: on\n\ttx-tcp-segmentation: on\n"
        "\ttx-tcp6-segmentation: on [fixed]\ngeneric-segmentation-offload: off\ngeneric-receive-offload: on\n"
    )
    assert [*preflight.switchable(text)] == ["tx-tcp-segmentation", "generic-receive-offload"]


def tables(flow: int, *, sender: bool, **values: float) -> layout.Tables:
    columns = {name: np.array([value]) for name, value in values.items()}
    ends = {"flow": [flow], "sender": [sender], "receiver": [not sender], "client": [sender]}
    samples = {"time_s": np.array([0.0, values["start_s"]]), "flow": np.array([flow, flow])} if sender else {}
    return {"flows": {"flow": np.array([flow]), **columns}, "ends": ends, "flow_samples": samples, "links": {}}


def test_each_column_of_a_flow_is_from_the_host_that_measures_it():
    _, testbed = planned()
    hosts = {host.name: host for host in testbed.hosts}
    found = {
        "a": tables(0, sender=True, start_s=1.0, delivered_bytes=0, retransmissions=5),
        "r": {"links": {"link": np.array([0])}, "ends": {}, "flows": {}},
        "b": tables(0, sender=False, start_s=1.5, delivered_bytes=9000, retransmissions=0),
        "c": tables(1, sender=False, start_s=2.0, delivered_bytes=70, retransmissions=0),
    }
    made = merge_tables(hosts, found, {"a": 2.0, "r": 1.0, "b": 1.0, "c": 1.0})
    flows = {name: column.tolist() for name, column in made["flows"].items()}
    assert flows == {"flow": [0, 1], "start_s": [2.0, 2.0], "delivered_bytes": [9000, 70], "retransmissions": [5, 0]}
    assert made["flow_samples"]["time_s"].tolist() == [0.0, 2.0]
    assert made["links"]["link"].tolist() == [0]
