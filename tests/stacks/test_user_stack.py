"""Users' transport stacks: the template, its contract, runs, and what a library can do wrong."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import _core, metrics, stacks
from ackclock.errors import AckclockError, InputError, ScenarioError
from ackclock.scaffold import new, stack_contract
from ackclock.scaffold.stack_contract import CLIENT, Opening, Process, StackError
from ackclock.scenario import planning
from ackclock.stacks import host

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (apt install gcc)")

SCENARIO = f"""
duration = "10s"
warmup = "2s"
{dumbbell("10Mbit", "40ms")}
[[flows]]
name = "own"
transport = "quic"
stack = "toy"
"""

Build = Callable[..., Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Build the template, with replacements in its text; return the library."""

    def make(*replacements: tuple[str, str]) -> Path:
        folder = tmp_path_factory.mktemp("stack")
        new.write(folder, new.render_stack(folder, "toy"))
        source = folder / "toy.c"
        text = source.read_text()
        for old, changed in replacements:
            assert text.count(old) == 1, old
            text = text.replace(old, changed)
        source.write_text(text)
        library = folder / "toy.so"
        command = ["cc", "-std=c11", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(library), str(source)]
        built = subprocess.run(command, capture_output=True, text=True, check=True)
        assert replacements or not built.stderr
        return library

    return make


@pytest.fixture(scope="module")
def toy(build: Build) -> Path:
    return build()


@pytest.fixture
def registered(toy: Path) -> Path:
    stacks.register(f"toy={toy}")
    return toy


def run(text: str, seed: int = 1) -> ac.Dataset:
    return ac.run(planning.loads(text).plan(), seeds=[seed])


# ---- the contract


def test_the_template_keeps_the_contract(toy: Path) -> None:
    clauses = list(stack_contract.clauses(toy))
    assert len(clauses) == 8
    assert [clause for clause in clauses if clause.violations] == []


RECEIVE = "    (void)ecn;\n    if (length"
SENDS = "size_t ackclock_poll(void *endpoint, uint64_t now_ns, uint8_t *buffer, size_t capacity, uint8_t *ecn) {\n"

#: A change of the template, the clause that it violates, and the beginning of the violation.
MUTATIONS = {
    "crash": ((RECEIVE, "    *(volatile int *)8 = 1;\n" + RECEIVE), "opens", "the process ended (SIGSEGV) in the call"),
    "exit": ((RECEIVE, "    exit(3);\n" + RECEIVE), "opens", "the process ended (exit status 3)"),
    "no function": (("uint32_t ackclock_status", "uint32_t status"), "opens", "no function ackclock_status; expected"),
    "other version": (("{ return ACKCLOCK_VERSION; }", "{ return 9; }"), "opens", "found 9; expected 1"),
    "NULL": (("struct endpoint *e = calloc(1, sizeof *e)", "struct endpoint *e = NULL; return e"), "opens", "NULL"),
    "timeout in the past": (
        ("{ return ((struct endpoint *)endpoint)->timer_ns; }", "{ (void)endpoint; return 5; }"),
        "opens",
        "ackclock_next_timeout returned 5 at 5 ns; expected a later time",
    ),
    "too large": (
        ("return sizeof h + h.length;", "return 1473;"),
        "opens",
        "returned 1473; expected at most its capac",
    ),
    "ECN codepoint": (("*ecn = ACKCLOCK_NOT_ECT", "*ecn = 4"), "opens", "found the ECN codepoint 4; expected 0 to 3"),
    "endless datagrams": ((SENDS, f"{SENDS}    return 9;\n"), "opens", "more than 100,000 datagrams at one time"),
    "takes too much": (("        taken += size;\n", "        taken += size + 65536;\n"), "opens", "returned"),
    "wrong bytes": (
        ("    e->read_bytes += size;\n", "    *buffer ^= 1; e->read_bytes += size;\n"),
        "opens",
        "other bytes",
    ),
    "clock": (
        (
            "struct header h = {MAGIC, (uint8_t)type, s && s->end, s ? s->length : 0, number, s ? s->order : e->echo};",
            "struct header h = {MAGIC, (uint8_t)type, s && s->end, s ? s->length : 0, number, s ? s->order : e->echo};"
            "extern int getpid(void); if (type == SYN) h.number = (uint64_t)getpid();",
        ),
        "the same seed",
        "datagram 0 (the client's, at 0 ns) has another payload in the second run",
    ),
    "global state": (
        ("        s->order = ++e->order;\n", "        static uint64_t all; s->order = e->order = ++all;\n"),
        "a connection sends the same",
        "has another payload in with a second connection",
    ),
    "no retransmission": (
        ("        s->state = READY;\n        e->in", "        e->in"),
        "a transfer survives",
        " bytes",
    ),
    "no check of foreign datagrams": (
        ("    if (h.magic", "    if (h.magic != MAGIC) e->status |= ACKCLOCK_CLOSED;\n    if (h.magic"),
        "foreign datagrams",
        "of 500,000 bytes were read",
    ),
    "keepalive": (
        ("{ return ((struct endpoint *)endpoint)->timer_ns; }", "{ static uint64_t t; return t += 1000000; }"),
        "an idle connection",
        "more than 50,000 events",
    ),
    "no backoff": (("if (++e->backoff > MAX_TIMEOUTS)", "if (0)"), "an end without", "a minute after"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_violation_is_reported(build: Build, name: str) -> None:
    replacement, clause, message = MUTATIONS[name]
    library = build(replacement)
    checked = next(each for each in stack_contract.clauses(library) if clause in each.text)
    assert checked.violations and message in checked.violations[0], checked


def test_an_endless_loop_is_given_up_and_ends(build: Build) -> None:
    library = build((RECEIVE, "    for (;;) {}\n" + RECEIVE))
    with Process(library, patience_s=1.0) as process:
        process.new(0, 0, Opening(CLIENT, 1, 1000))
        with pytest.raises(StackError, match=r"no return within 1 s from the call for a datagram at 7 ns"):
            process.receive(0, 7, 0, b"x")


def test_a_host_ends_with_the_other_side_even_in_an_endless_loop(build: Build) -> None:
    library = build((SENDS, f"{SENDS}    for (;;) {{}}\n"))
    ours, theirs = socket.socketpair()
    child = subprocess.Popen(stacks.host_command(library), stdin=theirs.fileno())
    theirs.close()
    assert ours.recv(5) == b"\1\0\0\0\0"
    config = host.CONFIG.pack(0, 1, 1472, 1, 12_000, 100_000, 1, host.NEVER) + b"\0\0"
    request = host.REQUEST.pack(ord("N"), 0, 0) + config
    ours.sendall(host.LENGTH.pack(len(request)) + request)
    ours.close()
    assert child.wait(60) == 0


# ---- runs


def test_a_run_has_the_tables_and_metrics_of_other_transports(registered: Path) -> None:
    data = run(SCENARIO)
    (view,) = metrics.runs(data)
    assert 8e6 < metrics.value(view, "goodput_bps[own]") < 9.6e6  # type: ignore[operator]
    assert 0 < metrics.value(view, "retransmission_rate[own]") < 0.05  # type: ignore[operator]
    (flow,) = data.flows.iter_rows(named=True)
    assert flow["congestion"] == "toy" and flow["recoveries"] > 0 and flow["tail_probes"] is None
    assert flow["established_s"] == pytest.approx(0.04, abs=0.001)
    samples = data.frame("flow_samples")
    assert samples["cwnd"].null_count() == 0 and samples["cwnd"].max() > 33  # type: ignore[operator]
    assert set(data.frame("events")["kind"]) >= {"established", "recovery"}


def test_the_same_seed_gives_the_same_result(registered: Path) -> None:
    text = SCENARIO + 'start = { jitter = "1s" }\n[record]\npackets = true\n'
    first, second, other = (run(text, seed) for seed in (1, 1, 2))
    for table in ("flows", "flow_samples", "packets", "events"):
        assert first.frame(table).equals(second.frame(table))
    assert not first.frame("packets").equals(other.frame("packets"))


def test_a_transfer_has_a_completion_time(registered: Path) -> None:
    data = run(SCENARIO + 'size = "1MB"\n')
    (flow,) = data.flows.iter_rows(named=True)
    assert flow["delivered_bytes"] == 1_000_000
    assert 1e6 * 8 / 10e6 < flow["fct_s"] < 5
    assert flow["sent_packets"] < 800


def test_a_flow_ends_at_its_stop(registered: Path) -> None:
    samples = run(SCENARIO + 'stop = "5s"\n').frame("flow_samples")
    assert samples["time_s"].max() == pytest.approx(5, abs=0.1)


def test_options_and_congestion_reach_the_stack(registered: Path) -> None:
    gentle = run(SCENARIO + 'options = "beta=0.9"\ncongestion = "aimd"\n')
    (flow,) = gentle.flows.iter_rows(named=True)
    assert flow["congestion"] == "aimd"
    assert flow["recoveries"] > run(SCENARIO).flows["recoveries"][0]
    with pytest.raises(InputError) as raised:
        run(SCENARIO + 'congestion = "cubic"\noptions = "x=1"\n')
    assert str(raised.value) == (
        'stack "toy": ackclock_new returned NULL for congestion = "cubic", options = "x=1"; expected an endpoint'
    )


def test_unknown_statistics_are_null(build: Build) -> None:
    library = build(("void ackclock_stats(", "void other_name("))
    stacks.register(f"toy={library}")
    data = run(SCENARIO + 'size = "1MB"\n')
    (flow,) = data.flows.iter_rows(named=True)
    assert flow["delivered_bytes"] == 1_000_000 and flow["fct_s"] > 0
    nulls = ("retransmissions", "measured_retransmissions", "timeouts", "measured_timeouts", "recoveries")
    assert [flow[name] for name in nulls] == [None] * 5
    samples = data.frame("flow_samples")
    assert all(samples[name].null_count() == samples.height > 0 for name in ("cwnd", "srtt_s", "in_flight"))
    (view,) = metrics.runs(data)
    assert metrics.value(view, "retransmission_rate[own]") is None


def test_a_failing_stack_is_one_line_and_status_2(build: Build, tmp_path: Path) -> None:
    library = build((RECEIVE, "    if (now_ns > 3000000000) *(volatile int *)8 = 1;\n" + RECEIVE))
    file = tmp_path / "own.toml"
    file.write_text(SCENARIO)
    command = [sys.executable, "-m", "ackclock", "run", str(file), "--stack", f"toy={library}", "--no-report"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith('stack "toy": its process ended (signal: 11 (SIGSEGV)')
    assert " in the call for a datagram at 3.00" in line
    assert not (tmp_path / "results" / "own-packet").exists()


def test_an_endless_loop_ends_a_run(build: Build) -> None:
    library = build((RECEIVE, "    for (;;) {}\n" + RECEIVE))
    stacks.register(f"toy={library}")
    plan = planning.loads(SCENARIO).plan()
    simulation = _core.Simulation(plan.engine_json, 1, {"toy": stacks.command("toy")}, 1.0)
    with pytest.raises(ConnectionError, match='stack "toy": no return within 1 s from the call for a datagram at 0.02'):
        simulation.advance(10.0)
    with pytest.raises(RuntimeError, match="cannot go on"):
        simulation.advance(10.0)


def test_what_the_library_prints_is_no_result(build: Build, tmp_path: Path) -> None:
    library = build((RECEIVE, '    puts("received"); fflush(stdout);\n' + RECEIVE))
    file = tmp_path / "own.toml"
    file.write_text(SCENARIO)
    command = [sys.executable, "-m", "ackclock", "run", str(file), "--stack", f"toy={library}", "--quick", "--json"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "received" in ended.stderr and "received" not in ended.stdout


def test_a_sweep_runs_it_in_its_workers(toy: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(SCENARIO + '[sweep]\n"flows[0].options" = ["beta=0.5", "beta=0.8"]\n"network.rtt" = ["20ms"]\n')
    command = [sys.executable, "-m", "ackclock", "sweep", str(file), "--stack", f"toy={toy}", "--repeats", "1"]
    ended = subprocess.run([*command, "--out", "out"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "beta=0.8" in ended.stdout


# ---- keys and options


@pytest.mark.parametrize(
    ("keys", "place", "message"),
    [
        ("streams = 2", "streams", 'found 2; expected no streams: it is one of noq, and stack = "toy" has `options`'),
        ("certificate_chain = '1KB'", "certificate_chain", "expected no certificate_chain"),
        ('options = "a\\nb"', "options", "expected up to 200 printable characters"),
    ],
)
def test_wrong_keys_are_one_line(registered: Path, keys: str, place: str, message: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        planning.loads(SCENARIO + keys).plan()
    (problem,) = raised.value.problems
    assert problem.key == f"flows[0].{place}" and message in str(problem)


def test_a_stack_without_the_option_is_one_line() -> None:
    with pytest.raises(ScenarioError, match=r'found "other"; expected "noq".*--stack other=FILE'):
        planning.loads(SCENARIO.replace("toy", "other")).plan()
    with pytest.raises(ScenarioError, match="expected no options: noq has none"):
        planning.loads(SCENARIO.replace("toy", "noq") + 'options = "x"').plan()


@pytest.mark.parametrize("given", ["toy", "=x.so", "To y=x.so", "noq=x.so", "toy=/no/such/file.so"])
def test_wrong_options_are_one_line(given: str) -> None:
    with pytest.raises(AckclockError) as raised:
        stacks.register(given)
    assert len(str(raised.value).splitlines()) == 1


def test_a_file_that_is_no_library_is_reported(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("text")
    (clause,) = stack_contract.clauses(tmp_path / "text.so")
    assert "cannot be loaded" in clause.violations[0]


def test_files_of_a_new_stack_replace_none(tmp_path: Path) -> None:
    new.write(tmp_path, new.render_stack(tmp_path, "mine"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ackclock.h", "mine.c", "mine.toml"]
    with pytest.raises(InputError, match=r"mine.c: found this file; expected a folder without it"):
        new.render_stack(tmp_path, "mine")
    with pytest.raises(InputError, match="NAME: found"):
        new.render_stack(tmp_path, "../up")
