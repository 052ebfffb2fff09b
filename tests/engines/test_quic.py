"""QUIC in the packet engine: its keys, its tables, and that it takes neither time nor randomness from the host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ackclock as ac
from ackclock import algorithms, engines, metrics, qlog
from ackclock.algorithms import prototype
from ackclock.errors import ScenarioError
from ackclock.scenario import planning

HERE = Path(__file__).parent

NETWORK = """
duration = "{duration}"
warmup = "{warmup}"
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "40ms"
queue = {queue}
"""

QUIC = """
[[flows]]
name = "quic"
transport = "quic"
"""

ENGINE = 'controller = "engine"\n'

TCP = """
[[flows]]
name = "tcp"
congestion = "cubic"
"""


def scenario(*tables: str, duration: str = "10s", warmup: str = "2s", queue: str = "") -> str:
    queue = queue or '{ discipline = "pfifo", limit = "1bdp" }'
    return NETWORK.format(duration=duration, warmup=warmup, queue=queue) + "".join(tables)


def run(text: str, seed: int = 1) -> ac.Dataset:
    return ac.run(planning.loads(text).plan(), seeds=[seed])


def value(data: ac.Dataset, name: str) -> float | None:
    (view,) = metrics.runs(data)
    found = metrics.value(view, name)
    assert not isinstance(found, list)
    return found


def events(data: ac.Dataset, kind: str) -> int:
    frame = data.frame("events")
    return frame.filter((frame["kind"] == kind) & (frame["link"].is_null())).height


# ---- tables and metrics


def test_a_transfer_delivers_its_bytes_and_has_a_completion_time() -> None:
    data = run(scenario(QUIC, 'size = "1MB"\nstreams = 3\n', duration="20s", warmup="0s"))
    (flow,) = data.flows.iter_rows(named=True)
    assert (flow["delivered_bytes"], flow["size_bytes"]) == (1_000_000, 1_000_000)
    assert flow["congestion"] == "cubic"
    assert flow["fct_s"] > 1e6 * 8 / 10e6
    assert flow["established_s"] == pytest.approx(0.08, abs=0.01)
    assert value(data, "fct_mean_s") == pytest.approx(flow["fct_s"])
    assert (events(data, "established"), events(data, "finished")) == (1, 1)


def test_samples_have_the_window_the_rtt_and_what_is_in_flight() -> None:
    data = run(scenario(QUIC))
    samples = data.frame("flow_samples")
    assert samples["cwnd"].null_count() == 0 and samples["srtt_s"].null_count() == 0
    measured = samples.filter(samples["time_s"] > 2)
    # 10 Mbit/s and 40 to 80 ms are 33 to 66 packets of 1500 bytes; pacing lets the window be a little more.
    assert 20 < measured["cwnd"].mean() < 90  # type: ignore[operator]
    assert 20 < measured["in_flight"].mean() < 75  # type: ignore[operator]
    assert 0.04 <= measured["srtt_s"].min() <= measured["srtt_s"].max() < 0.09  # type: ignore[operator]


def test_tcp_and_quic_have_the_same_metrics() -> None:
    data = run(scenario(TCP, QUIC, duration="30s", warmup="5s"))
    for group in ("tcp", "quic"):
        assert 1e6 < (value(data, f"goodput_bps[{group}]") or 0) < 9e6
        assert 0 < (value(data, f"retransmission_rate[{group}]") or 0) < 0.05
        assert (value(data, f"cwnd_mean[{group}]") or 0) > 5
    assert value(data, "udp_goodput_bps") is None
    (view,) = metrics.runs(data)
    assert view.flows.height == 2 and view.datagrams.height == 0


def test_a_marking_queue_reduces_the_window_without_loss() -> None:
    queue = '{ discipline = "codel", ecn = true }'
    marked, unmarked = (run(scenario(QUIC, f"ecn = {ecn}\n", queue=queue)) for ecn in ("true", "false"))
    assert events(marked, "mark_reaction") > 2 and events(marked, "recovery") == 0
    assert events(unmarked, "mark_reaction") == 0 and events(unmarked, "recovery") > 2


@pytest.mark.parametrize(("up_s", "survives"), [(12, True), (40, False)])
def test_an_outage_is_persistent_congestion_or_ends_the_connection(up_s: int, survives: bool) -> None:
    """RFC 9002 section 7.6; RFC 9000 section 10.1: the stack's idle timeout is 30 s."""
    changes = "".join(
        f'[[network.changes]]\nlink = "bottleneck"\nat = "{at_s}s"\nup = {is_up}\n'
        for at_s, is_up in ((2, "false"), (up_s, "true"))
    )
    data = run(scenario(QUIC, changes, duration="60s", warmup="0s"))
    last_s = data.frame("flow_samples")["time_s"].max()
    assert events(data, "timeout") == survives
    assert last_s == (60 if survives else pytest.approx(32, abs=0.1))


def test_connections_start_by_the_jitter_of_the_seed() -> None:
    text = scenario(QUIC, 'count = 2\nstart = { at = "1s", every = "1s", jitter = "500ms" }\n')
    starts = [run(text, seed).flows["start_s"].to_list() for seed in (1, 1, 2)]
    assert starts[0] == starts[1] != starts[2]
    assert 1 <= starts[0][0] < 1.5 and 2 <= starts[0][1] < 2.5


# ---- controllers of the engine


def test_a_controller_of_the_engine_has_its_parameters() -> None:
    own, plain, given = (
        planning.loads(scenario(QUIC.replace('name = "quic"\n', ""), keys)).plan()
        for keys in ("", ENGINE, ENGINE + 'congestion = { kind = "cubic", beta = 0.5 }\n')
    )
    assert own.datagrams[0].source["congestion"] == "cubic"
    kinds = [plan.datagrams[0].source["congestion"]["kind"] for plan in (plain, given)]
    betas = [plan.datagrams[0].source["congestion"]["parameters"]["beta"] for plan in (plain, given)]
    assert (kinds, betas) == (["cubic", "cubic"], [0.7, 0.5])
    assert [plan.groups[0].name for plan in (own, plain, given)] == ["noq cubic", *["noq engine cubic"] * 2]


def test_a_smaller_beta_leaves_a_smaller_window() -> None:
    keys = [ENGINE + f'congestion = {{ kind = "cubic", beta = {beta} }}\n' for beta in (0.3, 0.8)]
    low, high = (run(scenario(QUIC, each, duration="30s", warmup="10s")) for each in keys)
    assert low.flows["congestion"].to_list() == ["cubic"]
    assert (value(low, "cwnd_mean") or 0) < 0.9 * (value(high, "cwnd_mean") or 0)


@pytest.fixture
def registry() -> Iterator[None]:
    """Other tests count the algorithms that there are."""
    before = dict(algorithms._USER_SUPPLIED)
    yield
    algorithms._USER_SUPPLIED.clear()
    algorithms._USER_SUPPLIED.update(before)
    prototype._PROTOTYPES.pop("fixed_in_quic", None)
    algorithms.names.cache_clear()
    algorithms.spec.cache_clear()


@pytest.mark.usefixtures("registry")
def test_a_class_in_python_is_the_controller_of_a_connection() -> None:
    class Fixed:
        def __init__(self, initial_window: float, *, window: float = 10.0) -> None:
            self.cwnd, self.ssthresh = window, float("inf")

        def on_ack(self, ack: object) -> None: ...

        def on_loss(self, loss: object) -> None: ...

        def on_timeout(self, now_s: float, in_flight: int) -> None: ...

    ac.congestion_control(Fixed, name="fixed_in_quic")
    text = scenario(QUIC, ENGINE + 'mtu_discovery = false\ncongestion = { kind = "fixed_in_quic", window = 7 }\n')
    assert set(run(text).frame("flow_samples")["cwnd"]) == {7.0}


def test_threads_do_not_change_results() -> None:
    plan = planning.loads(scenario(QUIC, ENGINE + 'congestion = "bbr3"\ncount = 2\n', duration="5s")).plan()
    one, three = (ac.run(plan, seeds=[1, 2, 3], jobs=jobs) for jobs in (1, 3))
    for name in ("flow_samples", "events", "flows"):
        assert one.frame(name).equals(three.frame(name))


# ---- keys


@pytest.mark.parametrize(
    ("keys", "place", "message"),
    [
        ('congestion = "bbr3"', "congestion", 'controller = "engine": noq 1.4 takes no seed'),
        ('congestion = "vegas"', "congestion", 'found "vegas"; expected "cubic" or "reno" of noq, or controller = "en'),
        ('congestion = { kind = "cubic" }', "congestion", 'expected a name, or controller = "engine"'),
        ('controller = "ours"', "controller", 'expected "stack" or "engine"'),
        (ENGINE + 'congestion = "cubix"', "congestion", 'found "cubix"; expected "cubic"'),
        (ENGINE + 'congestion = { kind = "cubic", beta = 2 }', "congestion.beta", "expected"),
        (
            ENGINE + 'congestion = "prague"',
            "congestion",
            'found "prague"; expected another algorithm: prague reacts to',
        ),
        (ENGINE + 'congestion = "dctcp"', "congestion", "a stack reports only that there are some"),
        (ENGINE + 'congestion = "tahoe"', "congestion", "takes all that is in flight for lost, which a QUIC stack"),
        ('stack = "quinn"', "stack", 'found "quinn"; expected "noq"'),
        ("tcp = {}", "tcp", "no tcp: the keys of a QUIC stack are in the table itself"),
        ('application_rate = "1Mbit"', "application_rate", "the applications write and read at once"),
        ("streams = 101", "streams", "at most 100"),
        ('mtu = "1000B"', "mtu", "expected 1228B to 65535B"),
        ('size = "10p"', "size", "found"),
        ('transport = "sctp"', "transport", 'found "sctp"; expected one of "tcp", "quic"'),
    ],
)
def test_wrong_keys_are_one_line(keys: str, place: str, message: str) -> None:
    table = QUIC.replace('transport = "quic"\n', "") if keys.startswith("transport") else QUIC
    with pytest.raises(ScenarioError) as raised:
        planning.loads(scenario(table, keys)).plan()
    (problem,) = raised.value.problems
    assert problem.key == f"flows[0].{place}"
    assert message in str(problem)


def test_pairs_that_the_seed_draws_are_rejected() -> None:
    network = """
duration = "1s"
[network]
topology = "leaf-spine"
leaves = 2
spines = 2
hosts = 2
rate = "1Gbit"
delay = "10us"
queue = { discipline = "pfifo", limit = "100p" }
"""
    with pytest.raises(ScenarioError, match="the ends of QUIC are not drawn from the seed"):
        planning.loads(network + QUIC + 'between = "random"\n').plan()


@pytest.mark.parametrize("name", ["fluid", "meanfield", "theory", "linux", "ns2", "ns3"])
def test_no_other_engine_has_it(name: str) -> None:
    plan = planning.loads(scenario(QUIC)).plan()
    reasons = [each.what for each in engines.engine(name).unsupported(plan)]
    assert any('QUIC (transport = "quic")' in reason for reason in reasons), reasons


def test_an_engine_without_it_ends_with_status_3(tmp_path: Path) -> None:
    file = tmp_path / "quic.toml"
    file.write_text(scenario(QUIC))
    command = [sys.executable, "-m", "ackclock", "run", str(file), "--engine", "fluid"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert ended.stderr == 'Unsupported: engine "fluid" has no QUIC (transport = "quic"); available in "packet"\n'


def test_a_limit_by_the_number_of_flows_counts_connections() -> None:
    queue = '{ discipline = "pfifo", limit = "1bdp/sqrt(n)" }'
    limits = [
        planning.loads(scenario(TCP, QUIC, count, queue=queue)).plan().links[0].queue.parameters["limit_packets"]
        for count in ("count = 3\n", "count = 15\n")
    ]
    assert limits == [16, 8]


# ---- nothing from the host

#: Runs a plan with another clock and other random numbers, and prints a hash of all that comes out.
REPLACED = """
import ctypes, hashlib, json, sys
from ackclock import _core
plan, seed = sys.stdin.read(), int(sys.argv[1])
shim = ctypes.CDLL(None) if seed else None
if shim:
    shim.ackclock_replace(1, ctypes.c_ulong(seed))
simulation = _core.Simulation(plan, 1)
all_done = False
while not all_done:
    _, all_done = simulation.advance_some(2.0)
if shim:
    shim.ackclock_replace(0, ctypes.c_ulong(0))
tables = {**simulation.drain(), **simulation.finish()}
digest = hashlib.sha256(repr([(name, {key: list(column) for key, column in columns.items()})
    for name, columns in sorted(tables.items())]).encode()).hexdigest()
counts = [shim.ackclock_clock_calls(), shim.ackclock_random_calls()] if shim else [0, 0]
print(json.dumps([digest, *counts]))
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (apt install gcc)")
def test_the_clock_and_the_random_numbers_of_the_host_do_not_matter(tmp_path: Path) -> None:
    shim = tmp_path / "shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), str(HERE / "other_clock.c")], check=True)
    engine = QUIC.replace('name = "quic"', 'name = "engine"') + ENGINE + 'congestion = "bbr3"\n'
    text = scenario(TCP, engine, QUIC, "streams = 4\n[record]\npackets = true\n", duration="2s", warmup="0s")
    plan = planning.loads(text).plan().engine_json

    def printed(seed: int) -> list[object]:
        environment = {**os.environ, **({"LD_PRELOAD": str(shim)} if seed else {})}
        command = [sys.executable, "-c", REPLACED, str(seed)]
        found = subprocess.run(command, input=plan, env=environment, capture_output=True, text=True, check=True)
        result: list[object] = json.loads(found.stdout)
        return result

    own, first, second = (printed(seed) for seed in (0, 1, 2))
    assert own[0] == first[0] == second[0]
    # The clock is read once, for the origin of the stack's instants; its hash tables, which are never walked through,
    # may draw their keys once.
    clock_calls, random_calls = first[1:]
    assert clock_calls == 1 and random_calls in (0, 1)


# ---- the stack's own log


def test_a_log_of_the_stack_has_the_run_in_it(tmp_path: Path) -> None:
    """Its packets are those of the tables, its times those of the run, and every run writes the same."""
    plan = planning.loads(scenario(QUIC, TCP, "[record]\nqlog = true\n", duration="3s", warmup="0s")).plan()
    assert plan.logged_flows == (1,)
    data = ac.run(plan, seeds=[1, 2], captures=tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["seed-1-flow-1.sqlog", "seed-2-flow-1.sqlog"]
    (connection,) = qlog.connections(qlog.read(tmp_path / "seed-1-flow-1.sqlog"))
    (flow,) = data.flows.filter(run=0, flow=1).iter_rows(named=True)
    assert connection.sent_packets == pytest.approx(flow["sent_packets"], abs=3)  # coalesced in the handshake
    assert 2.9 < connection.end_s <= 3
    acks = [fact for fact in connection.facts if isinstance(fact, qlog.Acked) and fact.packets]
    assert min(fact.time_s - max(packet.time_s for packet in fact.packets) for fact in acks) >= 0.04
    again = tmp_path / "again"
    ac.run(plan, seeds=[1], captures=again)
    assert (again / "seed-1-flow-1.sqlog").read_bytes() == (tmp_path / "seed-1-flow-1.sqlog").read_bytes()


def test_a_log_changes_no_result() -> None:
    text = scenario(QUIC, duration="2s", warmup="0s")
    plain, logged = run(text), run(text + "[record]\nqlog = true\n")
    for table in ("flows", "flow_samples", "events"):
        assert plain.frame(table).equals(logged.frame(table))


def test_a_log_without_a_flow_of_the_stack_is_one_line() -> None:
    with pytest.raises(ScenarioError) as raised:
        planning.loads(scenario(TCP, "[record]\nqlog = true\n")).plan()
    (problem,) = raised.value.problems
    assert problem.key == "record.qlog" and "expected false: noq writes logs, and no flow has it" in str(problem)
