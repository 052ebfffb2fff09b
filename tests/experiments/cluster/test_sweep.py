"""Sweeps on real schedulers and workers: the same bytes, whoever is killed; what is refused, in one line."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from clusters import cluster

import ackclock as ac
from ackclock.experiments import cluster as clusters
from ackclock.experiments.sweep import folder as parts
from ackclock.experiments.sweep.folder import Parts
from ackclock.experiments.sweep.run import prepare

SWEPT = """
duration = "10s"
network = { topology = "dumbbell", rate = "20Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "1bdp" } }
flows = [{ count = 2, congestion = "reno", start = { jitter = "1s" } }]
repeats = 4
[sweep]
"network.queue.limit" = ["0.5bdp", "1bdp", "2bdp", "3bdp"]
"network.rtt" = ["10ms", "20ms"]
"""

METRICS = ["utilisation", "jain"]


@pytest.fixture(scope="module")
def two():
    with cluster(workers=2) as made:
        yield made


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The scenario, and the bytes of its table as one process makes it."""
    place = tmp_path_factory.mktemp("swept")
    (place / "swept.toml").write_text(SWEPT)
    ac.sweep(place / "swept.toml", out=place / "one", metrics=METRICS, jobs=1)
    return place / "swept.toml", (place / "one/points.parquet").read_bytes()


def test_the_same_bytes_as_on_one_core(two, swept, tmp_path):
    scenario, expected = swept
    ac.sweep(scenario, out=tmp_path / "out", metrics=METRICS, scheduler=two.address)
    assert (tmp_path / "out/points.parquet").read_bytes() == expected


def test_runs_of_a_killed_worker_are_repeated(swept, tmp_path):
    scenario, expected = swept
    with cluster(workers=2) as made:

        def kill_one(share: float) -> None:
            if share > 0.2 and len(made.workers) == 2:
                made.workers.pop().kill()

        ac.sweep(scenario, out=tmp_path / "out", metrics=METRICS, scheduler=made.address, progress=kill_one)
        assert len(made.workers) == 1
    assert (tmp_path / "out/points.parquet").read_bytes() == expected


def test_loss_and_return_of_all_workers_are_reported(swept, tmp_path, monkeypatch):
    scenario, expected = swept
    monkeypatch.setattr(clusters, "MAX_ABSENCE_S", 0.5)
    monkeypatch.setattr(clusters, "COUNT_S", 0.1)
    with cluster(workers=1) as made, pytest.warns(clusters.WorkersWarning) as said:
        first = made.workers[0]

        def kill_it(share: float) -> None:
            if share > 0.2 and made.workers == [first]:
                made.workers.pop().kill()
            elif len(said) == 1 and not made.workers:
                made.add()

        ac.sweep(scenario, out=tmp_path / "out", metrics=METRICS, scheduler=made.address, progress=kill_it)
    assert [str(line.message) for line in said] == [
        f"{made.address}: {clusters.WORKERS_LOST}",
        f"{made.address}: 1 worker is connected again",
    ]
    assert (tmp_path / "out/points.parquet").read_bytes() == expected


def test_a_line_is_printed_a_single_time_after_a_delay():
    monitor, lost = clusters.AbsenceMonitor(), clusters.WORKERS_LOST
    assert [monitor.message(2, 0.0), monitor.message(0, 2.0), monitor.message(1, 4.0)] == [None, None, None]
    assert [monitor.message(0, 10.0), monitor.message(0, 14.9), monitor.message(0, 15.0)] == [None, None, lost]
    back = [monitor.message(0, 60.0), monitor.message(3, 61.0), monitor.message(3, 62.0)]
    assert back == [None, "3 workers are connected again", None]


#: The command line, with a part for each task that is done.
CLIENT = """
from ackclock.experiments.sweep import folder
folder.PART_S = folder.PART_SHARE = 0.0
from ackclock.cli.program import main
main()
"""


def test_a_killed_client_goes_on(two, swept, tmp_path):
    scenario, expected = swept
    out = tmp_path / "out"
    options = ("--out", str(out), "--metrics", ",".join(METRICS), "--scheduler", two.address, "--no-report")
    client = subprocess.Popen([sys.executable, "-c", CLIENT, "sweep", str(scenario), *options])
    while client.poll() is None and len([*out.glob("runs.parquet/*")]) < 2:
        time.sleep(0.01)
    client.kill()
    client.wait()
    assert 0 < _done(scenario, out) < 32
    ac.sweep(scenario, out=out, metrics=METRICS, scheduler=two.address)
    assert (out / "points.parquet").read_bytes() == expected


def _done(scenario, out) -> int:
    """Return the number of runs in the folder."""
    with Parts(out, prepare(scenario, metrics=METRICS).spec) as opened:
        return len(opened.done)


def test_an_interrupt_keeps_what_is_done_and_the_workers_stop(two, swept, tmp_path):
    long = tmp_path / "long.toml"
    long.write_text(SWEPT.replace('"10s"', '"100000s"'))
    command = [sys.executable, "-m", "ackclock", "sweep", str(long), "--scheduler", two.address]
    client = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out"), "--no-report"], stderr=subprocess.PIPE, text=True
    )
    worker = two.workers[0]
    assert worker.address
    before_s = worker.cpu_s()
    deadline_s = time.monotonic() + 60
    while worker.cpu_s() < before_s + 0.5 and time.monotonic() < deadline_s:
        time.sleep(0.05)
    client.send_signal(signal.SIGINT)
    said = client.communicate(timeout=30)[1]
    assert client.returncode == 128 + signal.SIGINT
    assert said.strip().splitlines()[-1].startswith("interrupted; finished runs are kept")
    while _busy(worker):
        assert time.monotonic() < deadline_s, "a worker goes on with what nobody waits for"


def _busy(worker) -> bool:
    before_s = worker.cpu_s()
    time.sleep(0.5)
    return worker.cpu_s() - before_s > 0.1


def test_workers_of_this_machine(swept, tmp_path):
    scenario, expected = swept
    ac.sweep(scenario, out=tmp_path / "out", metrics=METRICS, cluster="local:2")
    assert (tmp_path / "out/points.parquet").read_bytes() == expected
    assert not _children()


def _children() -> list[str]:
    """Processes of this one that workers would be."""
    command = ["ps", "--ppid", str(os.getpid()), "-o", "args="]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [line for line in found.splitlines() if "spawn_main" in line]


def test_a_worker_of_another_version_is_rejected(swept, tmp_path):
    with cluster(workers=1) as made:
        other = made.add(before="import ackclock._core; ackclock._core.version = '0.0.1'")
        assert other.address
        with pytest.raises(ac.InputError) as refused:
            ac.sweep(swept[0], out=tmp_path / "out", metrics=METRICS, scheduler=made.address)
    host = socket.gethostname()
    assert str(refused.value) == (
        f"worker {other.address} ({host}): found ackclock 0.0.1; expected {ac.__version__}, as here"
    )


def test_a_late_worker_of_another_version_is_rejected(swept, tmp_path):
    with cluster(workers=1) as made:
        late = []

        def add(share: float) -> None:
            if not late:
                late.append(made.add(before="import ackclock._core; ackclock._core.version = '0.0.1'"))
                assert late[0].address

        with pytest.raises(ac.AckclockError, match=r"worker tcp://.*: found ackclock 0.0.1; expected .*, as here"):
            ac.sweep(swept[0], out=tmp_path / "out", metrics=METRICS, scheduler=made.address, progress=add)


def test_a_worker_without_ackclock_is_rejected(swept):
    with cluster() as made:
        assert made.add(before="import sys; sys.modules['ackclock'] = None").address
        with pytest.raises(ac.InputError, match=r"^worker tcp://\S+ \(\S+\): found no ackclock; expected .*, as here$"):
            ac.sweep(swept[0], metrics=METRICS, scheduler=made.address)


def test_a_worker_without_the_guest_kernel_is_rejected(swept, tmp_path):
    with cluster() as made:
        assert made.add(XDG_CACHE_HOME=str(tmp_path)).address
        with pytest.raises(
            ac.InputError, match=r"^worker tcp://\S+ \(\S+\): there is no guest kernel; `ackclock kernel"
        ):
            ac.sweep(swept[0], "linux", metrics=METRICS, scheduler=made.address)


def test_an_unreachable_scheduler_is_one_line(swept, monkeypatch):
    monkeypatch.setattr(clusters, "RESPONSE_S", 0.5)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(ac.InputError, match=f"^--scheduler: found no scheduler at {address}; expected the address"):
        ac.sweep(swept[0], metrics=METRICS, scheduler=address)


def test_a_scheduler_without_workers_is_one_line(swept, monkeypatch):
    monkeypatch.setattr(clusters, "WORKERS_S", 0.2)
    with cluster() as made, pytest.raises(ac.InputError, match=r"^--scheduler: found no worker at tcp://"):
        ac.sweep(swept[0], metrics=METRICS, scheduler=made.address)


def test_a_scheduler_that_goes_is_one_line_and_keeps_what_is_done(swept, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "PART_S", 0.0)
    monkeypatch.setattr(parts, "PART_SHARE", 0.0)
    with cluster(workers=2) as made:
        gone = []

        def end(share: float) -> None:
            if share > 0.3 and not gone:
                gone.append(made.scheduler.kill())

        with pytest.raises(ac.AckclockError, match=r"the scheduler no longer answers; what is done is kept"):
            ac.sweep(swept[0], out=tmp_path / "out", metrics=METRICS, scheduler=made.address, progress=end)
    assert _done(swept[0], tmp_path / "out") > 0


def test_without_the_extra_it_is_named(swept, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        ac.InputError, match=r"--cluster: found no package distributed; expected the extra: pip install"
    ):
        ac.sweep(swept[0], metrics=METRICS, cluster="local:1")
