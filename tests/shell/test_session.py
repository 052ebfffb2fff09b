"""`ackclock.shell` from Python, and its pytest fixture."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from shell.test_shell import CLIENT, PYTHON, SCENARIO, SERVER, in_namespaces, running
from small_networks import dumbbell

import ackclock as ac
from ackclock import _core
from ackclock.figures import curves
from ackclock.input.source import Source
from ackclock.metrics import runs
from ackclock.scenario import planning
from ackclock.shell import plans, sockets

pytest_plugins = ["pytester"]


@in_namespaces
def test_programs_run_in_the_network_one_after_the_other(tmp_path: Path):
    with ac.shell(SCENARIO, peer=SERVER, captures=tmp_path / "captures") as net:
        for _ in range(2):
            done = net.run([PYTHON, "-c", CLIENT], capture_output=True, text=True, check=True)
            assert (done.args, done.returncode, done.stdout) == ([PYTHON, "-c", CLIENT], 0, "300000\n")
    data = net.dataset()
    first, second = data.manifest["shell"]["connections"]
    assert first["ends"]["program"][1] != second["ends"]["program"][1]
    assert data.flows["delivered_bytes"].min() >= 300_000
    assert data.flows.height == 2
    assert len(ac.capture([tmp_path / "captures" / "program.pcap"]).data.flows) == 2


AT_LINKS = f"""
duration = "1s"
{dumbbell("10Mbit", "40ms", "20p")}
[record]
pcap = ["link:bottleneck", "receivers"]
"""


@in_namespaces
def test_links_of_the_scenario_are_captured(tmp_path: Path):
    """A connection has its own addresses behind the bottleneck, too; without a folder nothing is captured."""
    with ac.shell(AT_LINKS, peer=SERVER, captures=tmp_path / "captures") as net:
        net.run([PYTHON, "-c", CLIENT], stdout=subprocess.DEVNULL, check=True)
    files = [next((tmp_path / "captures").glob(name)) for name in ("*bottleneck.pcap", "*receivers.pcap", "peer.pcap")]
    link, receivers, peer = (ac.capture([file]).data.flows for file in files)
    names = ["source", "destination"]
    for flows in (link, receivers):
        assert flows.select(names).equals(peer.select(names))
        assert flows["delivered_bytes"][0] > 200_000  # the last ACKs are on their way when the program ends
    with ac.shell(AT_LINKS, peer=SERVER) as net:
        net.run([PYTHON, "-c", CLIENT], stdout=subprocess.DEVNULL, check=True)
    assert net.dataset().transmissions.height == 0


LOSSY = f"""
duration = "1s"
{dumbbell("10Mbit", "40ms", "20p")}
loss = {{ probability = 0.02 }}
"""


@in_namespaces
def test_tcp_info_has_windows_and_retransmissions(tmp_path: Path):
    """TCP_INFO counts the retransmissions that the capture at the sender shows."""
    with ac.shell(LOSSY, peer=SERVER, captures=tmp_path / "captures") as net:
        net.run([PYTHON, "-c", CLIENT], stdout=subprocess.DEVNULL, check=True)
        algorithm = net.run(["cat", "/proc/sys/net/ipv4/tcp_congestion_control"], capture_output=True, text=True)
    data = net.dataset()
    (flow,) = data.flows.iter_rows(named=True)
    (seen,) = ac.capture([tmp_path / "captures" / "peer.pcap"]).data.flows.iter_rows(named=True)
    assert flow["congestion"] == algorithm.stdout.strip()
    assert flow["retransmissions"] == flow["measured_retransmissions"] == seen["retransmissions"] > 0
    windows = data.frame("flow_samples")["cwnd"].drop_nulls()
    assert windows.len() > 5
    assert windows.min() >= 1
    assert curves.windows(next(runs(data))).labels == (f"flow {flow['flow']}",)
    peer, program = (data.manifest["shell"]["connections"][-1]["tcp"][end] for end in ("peer", "program"))
    assert peer["sent_bytes"] >= 300_000 > program["sent_bytes"]
    assert peer["min_rtt_s"] == pytest.approx(0.04, abs=0.02)


@in_namespaces
def test_queues_are_sized_for_full_packets_without_flows():
    network = 'topology = "dumbbell"\nrate = "20Mbit"\nrtt = "100ms"\nqueue = { discipline = "pfifo", limit = "1bdp" }'
    source = Source("no flows", f'duration = "5s"\n[network]\n{network}')
    plan = plans.planned(plans.with_programs(source))
    assert plan.links[0].queue.parameters["limit_packets"] == 250_000 // plan.packet_bytes == 165


def test_options_are_those_of_subprocess(tmp_path: Path):
    with ac.shell(SCENARIO) as net:
        assert net.run("cat", input=b"in", capture_output=True).stdout == b"in"
        assert net.run("pwd", cwd=tmp_path, capture_output=True, text=True).stdout == f"{tmp_path}\n"
        shown = net.run("echo $MINE $ACKCLOCK_PEER", env={"MINE": "1", "PATH": "/usr/bin:/bin"}, stdout=-1, text=True)
        assert shown.stdout == "1 10.77.0.1\n"
        assert net.run("exit 7").returncode == 7
        assert net.run("kill -9 $$").returncode == -9
        with pytest.raises(subprocess.CalledProcessError) as failed:
            net.run("exit 7", check=True)
        assert failed.value.cmd == "exit 7"
        with pytest.raises(FileNotFoundError, match="/none/such"):
            net.run(["/none/such"])
        with pytest.raises(ac.InputError, match='at: found "nowhere"; expected peer or program'):
            net.run("true", at="nowhere")
    with pytest.raises(ac.InputError, match="no network that runs"):
        net.run("true")
    with pytest.raises(ac.InputError, match="used before"), net:
        pass


@in_namespaces
def test_a_user_without_rights_may_listen_at_port_80():
    """The namespace permits it; whether this user has rights does not matter."""
    with ac.shell(SCENARIO) as net:
        for end in ("peer", "program"):
            read = net.run("cat /proc/sys/net/ipv4/ip_unprivileged_port_start", at=end, capture_output=True, text=True)
            assert read.stdout == "0\n"


@in_namespaces
def test_a_timeout_ends_the_program():
    with ac.shell(SCENARIO) as net:
        started = time.monotonic()
        with pytest.raises(subprocess.TimeoutExpired) as late:
            net.run(["sleep", "86397.5"], timeout=0.5, capture_output=True)
        assert late.value.cmd == ["sleep", "86397.5"]
        assert time.monotonic() - started < 60
        until_s = time.monotonic() + 30
        while running("86397.5") and time.monotonic() < until_s:
            time.sleep(0.05)
        assert not running("86397.5")


@in_namespaces
def test_the_ends_reach_each_other_by_name_and_nothing_else():
    with ac.shell(SCENARIO) as net:
        server = net.popen(["sleep", "86397.75"], at="peer")
        assert net.run("getent hosts peer program", capture_output=True, text=True).stdout.split()[1::2] == [
            "peer",
            "program",
        ]
        assert net.run(
            [PYTHON, "-c", "import socket; socket.create_connection(('1.1.1.1', 53), 1)"], stderr=-3
        ).returncode
        assert server.poll() is None
    assert server.returncode == -9
    assert not running("86397.75")


@in_namespaces
def test_an_exception_in_the_block_ends_everything():
    with pytest.raises(ZeroDivisionError), ac.shell(SCENARIO) as net:
        net.popen(["sleep", "86398.25"])
        _ = 1 / 0
    assert not running("86398.25")
    assert net.dataset().runs[0]["seed"] == 1
    with pytest.raises(ac.InputError, match="without a result"):
        ac.shell(SCENARIO).dataset()


@in_namespaces
def test_the_fixture_ends_with_its_test(pytester: pytest.Pytester):
    pytester.makepyfile(f"""
        import ackclock.shell.session

        def test_first(ackclock_shell):
            net = ackclock_shell({SCENARIO!r})
            assert net.run("true").returncode == 0
            ackclock.shell.session.kept = net, net.popen(["sleep", "86398.5"])

        def test_second():
            net, program = ackclock.shell.session.kept
            assert program.returncode == -9
            assert net.dataset().flows.is_empty()
    """)
    pytester.runpytest().assert_outcomes(passed=2)


def test_the_plugin_costs_pytest_little():
    heavy = ["numpy", "polars", "ackclock._core", "ackclock.shell.session"]
    code = f"import sys, ackclock.shell.pytest_plugin; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mtu": 100}, "mtu: found 100; expected a whole number from 576 to 65535"),
        ({"seed": -1}, "seed: found -1"),
        ({"scenario": "/none/such.toml"}, "no such file|No such file"),
        ({"scenario": {"duration": "1s"}}, "network"),
    ],
)
def test_a_mistake_is_reported_before_anything_starts(options: dict[str, object], message: str):
    with pytest.raises(ac.AckclockError, match=message):
        ac.shell(**{"scenario": SCENARIO, **options})


HOSTS = {
    "duration": "10s",
    "network": {
        "topology": "graph",
        "nodes": [*({"name": name, "host": True} for name in ("web", "office", "home")), {"name": "core"}],
        "links": [
            {
                "from": name,
                "to": "core",
                "rate": rate,
                "delay": delay,
                "queue": {"discipline": "pfifo", "limit": "1000p"},
            }
            for name, rate, delay in (
                ("web", "100Mbit", "5ms"),
                ("office", "100Mbit", "10ms"),
                ("home", "2Mbit", "40ms"),
            )
        ],
    },
}

#: A program that prints the time until a host refuses a connection, in ms.
REJECTED = """import socket, sys, time
start = time.monotonic()
try: socket.create_connection((socket.gethostbyname(sys.argv[1]), 9))
except ConnectionRefusedError: print(1000 * (time.monotonic() - start))
"""


@in_namespaces
def test_programs_are_hosts_of_a_graph():
    """Each pair of hosts is as far apart as the links between them; hosts share the links that their paths share."""
    with ac.shell(HOSTS, at=["web", "office", "home"], peer=SERVER) as net:
        ways = {("office", "web"): 30, ("home", "web"): 90, ("office", "home"): 100}
        for (host, other), rtt_ms in ways.items():
            done = net.run([PYTHON, "-c", REJECTED, other], at=host, capture_output=True, text=True, check=True)
            assert float(done.stdout) >= rtt_ms
        download = net.popen([PYTHON, "-c", CLIENT], at="office", stdout=subprocess.PIPE)
        assert net.run([PYTHON, "-c", CLIENT], at="home", capture_output=True).stdout == b"300000\n"
        assert download.communicate()[0] == b"300000\n"
    data = net.dataset()
    connections = data.manifest["shell"]["connections"]
    assert [set(each["ends"]) for each in connections[:3]] == [set(way) for way in ways]
    assert [each["is_rejected"] for each in connections] == [True] * 3 + [False] * 2
    flows = data.flows
    assert sorted(zip(flows["source"], flows["destination"], strict=True)) == [("web", "home"), ("web", "office")]
    assert flows["delivered_bytes"].min() >= 300_000


@pytest.mark.parametrize("name", ["web", "mixed-traffic", "leaf-spine"])
def test_the_scenarios_traffic_lasts_for_hours(name: str):
    """All transfers are made before the run, so there is an end."""
    nodes = ("h0", "h3") if name == "leaf-spine" else ()
    loaded = plans.with_programs(planning.source(Path(f"scenarios/{name}.toml")), nodes)
    plan = plans.planned(loaded, nodes=nodes)
    transfers = len(_core.drawn(plan.engine_json, plan.seeds[0])["transfers"]["start_s"])
    assert transfers == pytest.approx(plans.MAX_TRANSFERS, rel=0.2)  # a scenario's seconds are a small sample
    assert all(each.workload["stop_s"] > 300 for each in plan.traffic)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (["web", "core"], "core"),
        (["web", "h*"], 'at: found "h\\*"; expected'),
        (["web"], "at: found web; expected 2 to 32 different hosts"),
        (["web", "web"], "at: found web, web; expected 2 to 32 different hosts"),
    ],
)
def test_programs_are_at_two_hosts_or_more(at: list[str], message: str):
    with pytest.raises(ac.AckclockError, match=message):
        ac.shell(HOSTS, at=at)


@in_namespaces
def test_a_connection_that_is_over_is_not_active_any_more():
    """Two downloads one after the other: each flow ends with its connection, and the link is theirs meanwhile."""
    with ac.shell(SCENARIO, peer=SERVER) as net:
        for _ in range(2):
            net.run([PYTHON, "-c", CLIENT], stdout=subprocess.DEVNULL, check=True)
            time.sleep(1)
    flows = net.dataset().flows.sort("start_s")
    assert flows["end_s"][0] <= flows["start_s"][1]
    assert flows["end_s"][1] <= net.dataset().plan.duration_s - 0.9


@in_namespaces
def test_an_open_connection_is_active_to_the_end():
    client = """import os, socket, time
connection = socket.create_connection((os.environ["ACKCLOCK_PEER"], 5000))
connection.recv(1)
time.sleep(60)
"""
    with ac.shell(SCENARIO, peer=SERVER) as net:
        program = net.popen([PYTHON, "-c", client])
        time.sleep(1)
        assert program.poll() is None
    assert net.dataset().flows["end_s"].to_list() == [None]


@in_namespaces
def test_a_rejected_attempt_is_no_flow():
    """The server listens by IPv4 only: what tries IPv6 first, as is usual, is refused there."""
    server = SERVER.replace('("", 5000)', '("0.0.0.0", 5000)')
    client = CLIENT.replace('os.environ["ACKCLOCK_PEER"]', '"peer"')
    with ac.shell(SCENARIO, peer=server) as net:
        net.run([PYTHON, "-c", client], check=True, stdout=subprocess.DEVNULL)
    data = net.dataset()
    assert [each["is_rejected"] for each in data.manifest["shell"]["connections"]] == [True, False]
    assert data.flows.height == 1
    assert data.metrics()["summary"]["jain"]["mean"] == 1


@in_namespaces
@pytest.mark.parametrize(
    ("queue", "urgent"),
    [
        ({"discipline": "cake", "bandwidth": "2Mbit", "diffserv": "diffserv4"}, 46),
        ({"discipline": "prio", "limit": "1000p"}, 4),
    ],
)
def test_the_codepoint_of_a_packet_chooses_its_tin_or_band(queue: dict[str, object], urgent: int):
    """A flood of bulk datagrams fills the queue; urgent ones that come last overtake most of it.

    CAKE has a tin for EF (46); a router of Linux makes the former TOS "minimise delay" (4) the first band's.
    """
    scenario = {
        "duration": "10s",
        "network": {"topology": "dumbbell", "rate": "2Mbit", "rtt": "20ms", "queue": queue},
    }
    server = f"""exec {PYTHON} -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 5000))
_, address = s.recvfrom(100)
for number in range(220):
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ({urgent} if number >= 200 else 8) << 2)
    s.sendto(bytes([number]) + bytes(999), address)'
"""
    client = """import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.sendto(b"go", ("10.77.0.1", 5000))
order = []
while len([one for one in order if one >= 200]) < 20: order.append(s.recv(2000)[0])
print(len(order))
"""
    with ac.shell(scenario, peer=server) as net:
        done = net.run([PYTHON, "-c", client], capture_output=True, text=True, check=True)
    assert 20 <= int(done.stdout) < 100


def test_filling_samples_leaves_a_socket_its_last_report(monkeypatch: pytest.MonkeyPatch):
    """A browser's thousands of connections would else keep hundreds of reports each."""
    peer, program = ("10.77.0.1", 80), ("10.77.0.2", 5000)
    windows = dict.fromkeys(sockets.WINDOWS, 10.0)

    def reported(end: bytes) -> list[tuple[object, ...]]:
        here, there, count = (peer, program, 1000) if end == b"peer" else (program, peer, 0)
        return [(here, there, "cubic", {**windows, "acknowledged_bytes": count})]

    monkeypatch.setattr(sockets, "_core", SimpleNamespace(tcp_sockets=reported))
    kept = sockets.Sockets(0.0)
    kept.begin([(7, {"peer": peer, "program": program})])
    for number in range(100):
        for end in ("peer", "program"):
            kept.add(end, number / 100, end.encode())
    filled = kept.fill({"flow": [7], "time_s": [1.0], **{name: [np.nan] for name in sockets.WINDOWS}})
    assert filled["cwnd"].tolist() == [10.0]
    assert [len(one.reported) for one in kept._sockets.values()] == [1, 1]
