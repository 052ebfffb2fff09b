"""A plan's network as the commands of a real one: every packet goes where the plan says, with the plan's delays."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from changed import changed
from hypothesis import given
from hypothesis import strategies as st

import ackclock as ac
from ackclock.engines.linux import disciplines, network
from ackclock.engines.linux.script import script
from ackclock.plan import HopPlan, PathPlan

sys.path.insert(0, str(Path(__file__).parent))
from small_networks import dumbbell
from wired import read

SCENARIOS = Path(__file__).parents[3] / "scenarios"

DUMBBELL = f"""
duration = "10s"
{dumbbell("10Mbit", "40ms", "20p")}
[[flows]]
count = 2
congestion = "cubic"
"""

#: Commands for a pair of links and delays, derived by hand: the host's segments go into q0, are queued at its way out,
#: are transmitted and delayed 20 ms behind w0; ACKs go through d0, which delays them 20 ms. Hosts take
#: 0 to 20 µs for a packet. 10 Mb/s × 5 µs are 6 bytes.
BY_HAND = """\
ip netns add tx0
ip netns add rx0
ip netns add q0
ip netns add w0
ip netns add d0
ip netns exec tx0 sysctl -qw net.ipv4.conf.all.rp_filter=0
ip netns exec tx0 sysctl -qw net.ipv4.conf.default.rp_filter=0
ip netns exec rx0 sysctl -qw net.ipv4.conf.all.rp_filter=0
ip netns exec rx0 sysctl -qw net.ipv4.conf.default.rp_filter=0
ip netns exec q0 sysctl -qw net.ipv4.conf.all.rp_filter=0
ip netns exec q0 sysctl -qw net.ipv4.conf.default.rp_filter=0
ip netns exec q0 sysctl -qw net.ipv4.ip_forward=1
ip netns exec w0 sysctl -qw net.ipv4.conf.all.rp_filter=0
ip netns exec w0 sysctl -qw net.ipv4.conf.default.rp_filter=0
ip netns exec w0 sysctl -qw net.ipv4.ip_forward=1
ip netns exec d0 sysctl -qw net.ipv4.conf.all.rp_filter=0
ip netns exec d0 sysctl -qw net.ipv4.conf.default.rp_filter=0
ip netns exec d0 sysctl -qw net.ipv4.ip_forward=1
ip netns exec tx0 sysctl -qw net.ipv4.tcp_sack=1
ip netns exec tx0 sysctl -qw net.ipv4.tcp_timestamps=1
ip netns exec tx0 sysctl -qw net.ipv4.tcp_window_scaling=1
ip netns exec tx0 sysctl -qw net.ipv4.tcp_ecn=0
ip netns exec tx0 sysctl -qw net.ipv4.tcp_recovery=1
ip netns exec tx0 sysctl -qw net.ipv4.tcp_frto=2
ip netns exec tx0 sysctl -qw net.ipv4.tcp_early_retrans=3
ip netns exec tx0 sysctl -qw net.ipv4.tcp_no_metrics_save=1
ip netns exec tx0 sysctl -qw 'net.ipv4.tcp_rmem=4096 131072 268435456'
ip netns exec tx0 sysctl -qw 'net.ipv4.tcp_wmem=4096 16384 268435456'
ip netns exec tx0 sysctl -qw net.ipv4.tcp_tw_reuse=1
ip netns exec tx0 sysctl -qw 'net.ipv4.ip_local_port_range=1024 65535'
ip netns exec rx0 sysctl -qw net.ipv4.tcp_sack=1
ip netns exec rx0 sysctl -qw net.ipv4.tcp_timestamps=1
ip netns exec rx0 sysctl -qw net.ipv4.tcp_window_scaling=1
ip netns exec rx0 sysctl -qw net.ipv4.tcp_ecn=0
ip netns exec rx0 sysctl -qw net.ipv4.tcp_recovery=1
ip netns exec rx0 sysctl -qw net.ipv4.tcp_frto=2
ip netns exec rx0 sysctl -qw net.ipv4.tcp_early_retrans=3
ip netns exec rx0 sysctl -qw net.ipv4.tcp_no_metrics_save=1
ip netns exec rx0 sysctl -qw 'net.ipv4.tcp_rmem=4096 131072 268435456'
ip netns exec rx0 sysctl -qw 'net.ipv4.tcp_wmem=4096 16384 268435456'
ip netns exec rx0 sysctl -qw net.ipv4.tcp_tw_reuse=1
ip netns exec rx0 sysctl -qw 'net.ipv4.ip_local_port_range=1024 65535'
ip link add c0 netns tx0 arp off mtu 1500 address 02:00:00:00:00:00 type veth peer name c0 arp off mtu 1500 \
address 02:00:00:00:00:00 netns q0
ip link add out netns q0 arp off mtu 1500 address 02:00:00:00:00:01 type veth peer name c1 arp off mtu 1500 \
address 02:00:00:00:00:01 netns w0
ip link add c2 netns w0 arp off mtu 1500 address 02:00:00:00:00:02 type veth peer name c2 arp off mtu 1500 \
address 02:00:00:00:00:02 netns rx0
ip link add c3 netns rx0 arp off mtu 1500 address 02:00:00:00:00:03 type veth peer name c3 arp off mtu 1500 \
address 02:00:00:00:00:03 netns d0
ip link add c4 netns d0 arp off mtu 1500 address 02:00:00:00:00:04 type veth peer name c4 arp off mtu 1500 \
address 02:00:00:00:00:04 netns tx0
ip netns exec tx0 ethtool -K c0 tso off gso off gro off
ip netns exec rx0 ethtool -K c3 tso off gso off gro off
ip -n tx0 link set lo up
ip -n tx0 link set c0 up
ip -n tx0 link set c4 up
ip -n tx0 addr add 10.1.0.1/32 dev lo
ip -n tx0 route add default via 10.0.0.1 dev c0 onlink advmss 1460 initcwnd 10 rto_min 200ms
ip -n rx0 link set lo up
ip -n rx0 link set c3 up
ip -n rx0 link set c2 up
ip -n rx0 addr add 10.2.0.1/32 dev lo
ip -n rx0 route add default via 10.0.0.1 dev c3 onlink advmss 1460 initcwnd 10 rto_min 200ms
ip -n q0 link set lo up
ip -n q0 link set out up
ip -n q0 link set c0 up
ip -n q0 route add default via 10.0.0.1 dev out onlink
ip -n w0 link set lo up
ip -n w0 link set c2 up
ip -n w0 link set c1 up
ip -n w0 route add default via 10.0.0.1 dev c2 onlink
ip -n d0 link set lo up
ip -n d0 link set c4 up
ip -n d0 link set c3 up
ip -n d0 route add default via 10.0.0.1 dev c4 onlink
tc -n d0 qdisc add dev c4 root netem limit 1000000 delay 20010us 10us rate 1000gbit
tc -n q0 qdisc add dev out root handle 1: htb default 1
tc -n q0 class add dev out parent 1: classid 1:1 htb rate 10000000bit ceil 10000000bit burst 6 cburst 6 quantum 1514
tc -n q0 qdisc add dev out parent 1:1 handle 10: pfifo limit 20
tc -n w0 qdisc add dev c2 root handle 1: netem limit 1000000 delay 20ms rate 10000000bit
tc -n w0 qdisc add dev c2 parent 1: netem limit 1000000 delay 10us 10us rate 1000gbit
""".splitlines()


def plan(text=DUMBBELL, *changes):
    return ac.loads(changed(text, *changes)).plan()


def commands(planned, **options):
    return script(network.lay(planned), planned, **options)


def every_way(planned, net):
    """Each way with its two paths, and where its ends are."""
    yield from zip(planned.flows, net.flows, strict=True)
    yield from zip(planned.datagrams, net.datagrams, strict=True)
    for traffic, ends in zip(planned.traffic, net.traffic, strict=True):
        yield from zip(traffic.population.paths, ends, strict=True)


def check(planned):
    """Both directions of each way cross exactly the plan's links, in their order, with the plan's delays."""
    net = network.lay(planned)
    wired = read(script(net, planned))
    for way, ends in every_way(planned, net):
        check_path(planned, wired, way.forward, ends.source, ends.destination, net.hosts)
        check_path(planned, wired, way.reverse, ends.destination, ends.source, net.hosts)
    assert all(node[0] in "wdif" for node, _ in [*wired.delay_s, *wired.transmits])


def check_path(planned, wired, path, start, goal, hosts):
    assert wired.addresses[goal.address] == goal.namespace
    taken = wired.follow(start.namespace, goal.address)
    links = [planned.links[hop.link] for hop in path.hops]
    assert [node for node, device in taken if (node, device) in wired.shaped] == [f"q{hop.link}" for hop in path.hops]
    transmitting = [place for place in taken if place in wired.transmits and place[0][0] != "i"]
    assert [wired.transmits[place] for place in transmitting] == [
        f"{round(link.rate_bps)}bit" for link in links if link.burst_bytes is None and not at_opportunities(link)
    ]
    expected_s = path.delay_s + sum(hop.delay_s for hop in path.hops) + sum(link.delay_s for link in links)
    expected_s += sum(hosts[goal.namespace].processing or (0, 0)) / 2
    assert sum(wired.delay_s.get(place, 0.0) for place in taken) == pytest.approx(expected_s, abs=2e-9 * len(taken))


def at_opportunities(link):
    return link.trace is not None and link.trace.course["kind"] == "opportunities"


def test_the_commands_of_a_dumbbell_are_those_reasoned_by_hand():
    assert commands(plan()) == BY_HAND


@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_packets_take_the_paths_of_the_scenarios(file):
    for point in ac.load(file).points():
        if not point.plan.nodes:
            check(point.plan)


@given(
    st.lists(
        st.tuples(
            st.permutations(range(4)), st.integers(0, 4), st.lists(st.integers(0, 3_000_000), min_size=5, max_size=5)
        ),
        min_size=2,
        max_size=12,
    )
)
def test_packets_take_the_paths_of_any_plan(drawn):
    """Each flow there and back through some of four links in some order, after any delays in microseconds."""
    planned = plan()
    links = tuple(
        replace(planned.links[0], name=f"l{n}", delay_s=n / 100, burst_bytes=1600 if n == 1 else None) for n in range(4)
    )

    def path(order, count, delays_us):
        hops = zip(delays_us, order[:count], strict=False)
        return PathPlan(tuple(HopPlan(delay_us / 1e6, link) for delay_us, link in hops), delays_us[-1] / 1e6)

    ways = [path(*one) for one in drawn]
    flows = tuple(
        replace(planned.flows[0], forward=forward, reverse=reverse)
        for forward, reverse in zip(ways, ways[1:] + ways[:1], strict=True)
    )
    check(replace(planned, links=links, flows=flows))


def test_flows_alike_share_everything():
    few, many = (plan(DUMBBELL, ("count = 2", f"count = {count}")) for count in (1, 1000))
    assert commands(few) == commands(many)


def test_commands_grow_with_the_number_of_delays_and_slowly():
    """A way of its own delay: 2 addresses, 2 routes, 2 cables with 4 commands each, a host's time behind a link."""

    def count(ways):
        rtts = ", ".join(f'"{40 + way}ms"' for way in range(ways))
        return len(commands(plan(DUMBBELL, ('"40ms"', f"[{rtts}]"), ("count = 2", f"count = {ways}"))))

    assert count(400) - count(200) == 200 * 13


def test_hosts_with_other_settings_are_others():
    """The initial window is a route's; beyond it the two groups are alike."""
    other = '[[flows]]\ncongestion = "cubic"\ntcp = { initial_window = 4 }\n'
    net = network.lay(plan(DUMBBELL + other))
    assert [ends.source.namespace for ends in net.flows] == ["tx0", "tx0", "tx1"]
    assert [ends.source.address for ends in net.flows] == ["10.1.0.1", "10.1.0.1", "10.1.0.2"]


def test_a_priority_is_in_the_address():
    net = network.lay(plan(DUMBBELL + '[[flows]]\ncongestion = "cubic"\npriority = 6\n'))
    assert net.flows[-1].source.address == "10.97.0.1"
    assert net.flows[-1].destination.address == "10.98.0.1"
    assert (
        len({network.address(p, side, n) for p in range(16) for side in (1, 2) for n in range(1, 300)}) == 16 * 2 * 299
    )


def test_other_overheads_are_made_up_for():
    """The kernel counts 14 bytes of Ethernet; with 38 a packet takes 24 more, in the bucket and behind it."""
    lines = commands(plan(DUMBBELL, ("[[flows]]", 'frame_overhead = "38B"\n[[flows]]')))
    assert "tc -n q0 qdisc add dev out root handle 1: stab overhead 24 linklayer ethernet htb default 1" in lines
    assert "tc -n w0 qdisc add dev c2 root handle 1: netem limit 1000000 delay 20ms rate 10000000bit 24" in lines


def test_a_token_bucket_has_its_burst_and_no_transmission_time():
    lines = commands(plan(DUMBBELL, ("[[flows]]", 'burst = "1600B"\n[[flows]]')))
    assert any("htb rate 10000000bit ceil 10000000bit burst 1600 cburst 1600" in line for line in lines)
    assert "tc -n w0 qdisc add dev c2 root netem limit 1000000 delay 20010us 10us rate 1000gbit" in lines


def test_offloads_and_batches():
    with_offloads = commands(plan(), offloads=True)
    assert not any("ethtool" in line for line in with_offloads)
    alone = commands(plan(DUMBBELL, ("[[flows]]", "[tcp]\ntso_batching = false\n[[flows]]")))
    assert [line.split()[5] for line in alone if "gso_max_segs 1" in line] == ["tx0", "rx0"]


def test_user_sysctls_are_set_last_on_every_host():
    lines = commands(plan(), sysctls={"net.ipv4.tcp_sack": 0, "net.ipv4.tcp_rmem": "1 2 3"})
    for host in ("tx0", "rx0"):
        prefix = f"ip netns exec {host} sysctl -qw "
        assert [line for line in lines if line.startswith(prefix)][-2:] == [
            f"{prefix}net.ipv4.tcp_sack=0",
            f"{prefix}'net.ipv4.tcp_rmem=1 2 3'",
        ]


def test_live_nothing_speaks_ipv6_and_the_bucket_forgives_lateness():
    lines = commands(plan(), live=True, ipv6=True)
    for node in ("tx0", "rx0", "q0", "w0", "d0"):
        assert f"ip netns exec {node} sysctl -qw net.ipv6.conf.default.disable_ipv6=1" in lines
    assert any("burst 1600" in line for line in lines)


def test_random_loss_is_before_the_queue_and_spares_acks():
    lines = commands(plan(DUMBBELL, ("[[flows]]", "loss = { probability = 1e-3 }\n[[flows]]")))
    wired = read(lines)
    assert [node for node, _ in wired.follow("tx0", "10.2.0.1")] == ["tx0", "e0", "q0", "w0"]
    assert "tc -n e0 qdisc add dev c1 parent 1:3 handle 13: netem limit 1000000 loss 0.1%" in lines
    assert "tc -n e0 qdisc add dev c1 parent 1:1 handle 11: netem limit 1000000 loss 0%" in lines
    short = "tc -n e0 filter add dev c1 parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff"
    assert f"{short} match u16 0x0000 0xff00 at 2 flowid 1:2" in lines


@pytest.mark.parametrize(
    ("processing", "words"),
    [
        ('"10us"', "10us"),
        ('{ distribution = "uniform", from = "2us", to = "20us" }', "11us 9us"),
    ],
)
def test_host_processing_delays_packets(processing, words):
    """In order: with a rate, netem keeps it. Of what is still being transmitted, from its last bit on."""
    planned = ac.loads(f"{DUMBBELL}\n[tcp]\nprocessing = {processing}\n").plan()
    laid = network.lay(planned)
    lines = [line for line in script(laid, planned) if " netem " in line]
    to = {end: laid.device(number) for number, cable in enumerate(laid.cables) for end in [cable.target]}
    delays_s = [float(word.removesuffix("us")) * 1e-6 for word in words.split()]
    back = " ".join(disciplines.time(delay_s) for delay_s in (0.02 + delays_s[0], *delays_s[1:]))
    assert lines == [
        f"tc -n d0 qdisc add dev {to['tx0']} root netem limit 1000000 delay {back} rate 1000gbit",
        f"tc -n w0 qdisc add dev {to['rx0']} root handle 1: netem limit 1000000 delay 20ms rate 10000000bit",
        f"tc -n w0 qdisc add dev {to['rx0']} parent 1: netem limit 1000000 delay {words} rate 1000gbit",
    ]


def test_a_host_that_is_near_takes_its_time_before_another_hosts_packets_reach_it():
    """Never on the device of the host that sends."""
    planned = ac.loads(DUMBBELL.replace('"40ms"', '"1us"')).plan()
    assert [cable.source for cable in network.lay(planned).cables if cable.processing] == ["w0", "d0"]
