"""`ackclock.shell` from Python, and its pytest fixture."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from shell.test_shell import CLIENT, PYTHON, SCENARIO, SERVER, in_namespaces, running

import ackclock as ac

pytest_plugins = ["pytester"]


@in_namespaces
def test_programs_run_in_the_network_one_after_the_other(tmp_path: Path):
    with ac.shell(SCENARIO, peer=SERVER, captures=tmp_path / "captures") as net:
        for _ in range(2):
            done = net.run([PYTHON, "-c", CLIENT], capture_output=True, text=True, check=True)
            assert (done.args, done.returncode, done.stdout) == ([PYTHON, "-c", CLIENT], 0, "300000\n")
    data = net.dataset()
    first, second = data.manifest["shell"]["connections"]
    assert first["program"][1] != second["program"][1]
    assert data.flows["delivered_bytes"].min() >= 300_000
    assert data.flows.height == 2
    assert len(ac.capture([tmp_path / "captures" / "program.pcap"]).data.flows) == 2


@in_namespaces
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
        with pytest.raises(ac.InputError, match='at: found "nowhere"; expected program or peer'):
            net.run("true", at="nowhere")
    with pytest.raises(ac.InputError, match="no network that runs"):
        net.run("true")
    with pytest.raises(ac.InputError, match="used before"), net:
        pass


@in_namespaces
def test_a_timeout_ends_the_program():
    with ac.shell(SCENARIO) as net:
        started = time.monotonic()
        with pytest.raises(subprocess.TimeoutExpired) as late:
            net.run(["sleep", "86397.5"], timeout=0.5, capture_output=True)
        assert late.value.cmd == ["sleep", "86397.5"]
        assert time.monotonic() - started < 60
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
    pytester.runpytest("-p", "ackclock.shell.pytest_plugin").assert_outcomes(passed=2)


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
