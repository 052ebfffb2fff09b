"""Sweeps: the same table however they are run, killed and gone on with."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import metrics
from ackclock.dataset.folders import is_temporary
from ackclock.experiments.sweep import result
from ackclock.experiments.sweep.folder import Parts, read_manifest
from ackclock.experiments.sweep.folder import scan as scan_files
from ackclock.experiments.sweep.run import prepare
from ackclock.experiments.sweep.spec import chosen_metrics

ROOT = Path(__file__).parents[3]

SCENARIO = f"""\
name = "small"
duration = "2s"
warmup = "500ms"
repeats = 3

{dumbbell("1Mbit", "20ms")}

[[flows]]
count = 2
congestion = "cubic"
start = {{ jitter = "100ms" }}

[sweep]
"network.queue.limit" = ["2p", "8p"]
"flows[0].count" = [1, 2]
"""

#: A part after every task, so that a kill finds some.
KILLED = """
import sys
from ackclock.experiments.sweep import folder as parts, run
parts.PART_S = parts.PART_SHARE = 0.0
run.MAX_IN_TASK = 1
import ackclock as ac
if __name__ == "__main__":
    ac.sweep(sys.argv[1], out=sys.argv[2], jobs=2)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps")
    (folder / "small.toml").write_text(SCENARIO)
    (folder / "killed.py").write_text(KILLED)
    return folder


@pytest.fixture(scope="module")
def uninterrupted(place):
    """The sweep, run in one go by one process."""
    return ac.sweep(place / "small.toml", out=place / "whole", jobs=1)


def bytes_of(folder: Path) -> bytes:
    return (folder / "points.parquet").read_bytes()


def test_a_row_for_each_run_with_what_was_swept(uninterrupted):
    found = uninterrupted.table
    assert found["run"].to_list() == [*range(12)]
    assert found["point"].to_list() == [point for point in range(4) for _ in range(3)]
    assert found["seed"].to_list() == [1, 2, 3] * 4
    assert found["network.queue.limit"].to_list() == ["2p"] * 6 + ["8p"] * 6
    assert found["flows[0].count"].dtype == pl.Int64
    assert found["flows[0].count"].to_list() == ([1] * 3 + [2] * 3) * 2
    assert set(metrics.METRICS) <= set(found.columns)


def test_the_metrics_of_a_point_are_those_of_the_scenario_written_for_it(uninterrupted):
    text = SCENARIO.split("[sweep]", maxsplit=1)[0].replace("1bdp", "8p").replace("count = 2", "count = 1")
    alone = ac.run(ac.loads(text).plan()).metrics()
    for run, row in zip(
        alone["runs"], uninterrupted.table.filter(pl.col("point") == 2).iter_rows(named=True), strict=True
    ):
        for name, value in run["metrics"].items():
            assert row[name] == (None if value is None else pytest.approx(value, rel=1e-12)), name
    found = uninterrupted.points[2]["summary"]["utilisation"]
    assert found == pytest.approx(alone["summary"]["utilisation"], rel=1e-12)
    assert found["n"] == 3


def test_tables_of_flows_and_links_are_kept_with_run_and_point(uninterrupted):
    flows = uninterrupted.scan("flows").collect()
    assert flows.columns[:2] == ["run", "point"]
    assert flows["run"].is_sorted(), "the order of the rows hangs on when each run was ready"
    counts = flows.group_by("run", "point").len().sort("run")
    assert counts["len"].to_list() == ([1] * 3 + [2] * 3) * 2
    assert counts["point"].to_list() == uninterrupted.table["point"].to_list()
    assert uninterrupted.scan("links").collect().height == 12
    with pytest.raises(ac.InputError, match="no table 'flow_samples'; expected a sweep that was run with --samples"):
        uninterrupted.scan("flow_samples")


def test_the_number_of_processes_does_not_matter(place, uninterrupted):
    ac.sweep(place / "small.toml", out=place / "two", jobs=2)
    assert bytes_of(place / "two") == bytes_of(uninterrupted.folder)


def scan(folder: Path, table: str) -> pl.LazyFrame:
    """A table of the parts that count."""
    return scan_files(folder, table, read_manifest(folder).files)


def runs_in(folder: Path) -> set[int]:
    """The runs that are in complete parts."""
    if not (folder / "manifest.json").exists() or not read_manifest(folder).under("runs.parquet"):
        return set()
    found = scan(folder, "runs").collect()["run"].to_list()
    assert len(set(found)) == len(found), "a run is there twice"
    return set(found)


def alive(session: int) -> list[int]:
    """The processes of a session that are at work."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def has_ended(session: int) -> bool:
    """Return True if all processes of a session end soon."""
    return soon(lambda: not alive(session))


def soon(condition) -> bool:
    """Return True if a condition comes true within a minute, on a busy machine."""
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.1)
    return False


def workers(session: int) -> list[int]:
    """The processes of a session that run points."""
    return [pid for pid in alive(session) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_sweep_may_be_killed_at_any_moment(place, uninterrupted):
    """kill -9, over and over: in the end the same bytes, every run once, and no process left behind."""
    folder, draw, kept, kills = place / "killed", random.Random(7), set(), 0
    command = [sys.executable, str(place / "killed.py"), str(place / "small.toml"), str(folder)]
    for longest_s in [0.1, 0.5, *(draw.uniform(0.2, 4.0) for _ in range(12)), None]:  # the first on any machine
        process = subprocess.Popen(command, start_new_session=True)
        try:
            assert process.wait(timeout=longest_s) == 0
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
        assert has_ended(process.pid), "a process outlives the sweep that was killed"
        assert kept <= runs_in(folder), "a run that was kept is lost"
        kept = runs_in(folder)
    assert kills >= 1
    assert runs_in(folder) == {*range(12)}
    assert bytes_of(folder) == bytes_of(uninterrupted.folder)
    for name in ("flows", "links"):
        order = ["run", name.removesuffix("s")]
        assert scan(folder, name).sort(order).collect().equals(uninterrupted.scan(name).sort(order).collect())
    assert not [*filter(is_temporary, folder.rglob("*"))]


def test_remains_of_a_killed_part_are_removed_and_its_runs_repeated(place, uninterrupted, tmp_path):
    folder = tmp_path / "left"
    shutil.copytree(uninterrupted.folder, folder)
    (last,) = sorted((folder / "runs.parquet").glob("part-*"))[-1:]
    last.unlink()
    (folder / "flows.parquet" / "part-0009.parquet").write_bytes(b"half")
    (folder / "points.parquet").unlink()
    with pytest.raises(ac.InputError, match=r"part-0009.parquet: additional: .* \(and 1 more\)"):
        result.read(folder)
    with pytest.warns(UserWarning, match="missing; it is made again"):
        again = ac.sweep(place / "small.toml", out=folder, jobs=2)
    assert bytes_of(folder) == bytes_of(uninterrupted.folder)
    assert again.scan("flows").collect().equals(uninterrupted.scan("flows").collect())
    assert sorted(path.name for path in (folder / "flows.parquet").iterdir()) == sorted(
        path.name for path in (folder / "runs.parquet").iterdir()
    )


def test_a_finished_sweep_is_not_repeated(place, uninterrupted):
    before = {path: path.stat().st_mtime_ns for path in uninterrupted.folder.glob("*.parquet/*")}
    told = []
    again = ac.sweep(place / "small.toml", out=uninterrupted.folder, progress=told.append)
    assert told == [1.0]
    assert again.table.equals(uninterrupted.table)
    assert {path: path.stat().st_mtime_ns for path in uninterrupted.folder.glob("*.parquet/*")} == before


REJECTED = {
    "another scenario": (
        {"text": SCENARIO.replace("8p", "9p")},
        "found an earlier sweep, which differs in: scenario; expected",
    ),
    "other seeds": ({"seeds": [1, 2]}, "found an earlier sweep, which differs in: seeds; expected"),
    "other metrics": ({"metrics": ["jain"]}, "found an earlier sweep, which differs in: metrics; expected"),
    "samples": ({"samples": True}, "found an earlier sweep, which differs in: samples; expected"),
}


@pytest.mark.parametrize(("changes", "expected"), REJECTED.values(), ids=REJECTED.keys())
def test_another_sweep_does_not_go_on_in_the_folder(uninterrupted, changes, expected):
    loaded = ac.loads(changes.pop("text", SCENARIO), "small.toml")
    before = bytes_of(uninterrupted.folder)
    with pytest.raises(ac.InputError, match=expected):
        ac.sweep(loaded, out=uninterrupted.folder, **changes)
    assert bytes_of(uninterrupted.folder) == before


def test_fresh_begins_anew_and_leaves_the_users_files(place, tmp_path):
    folder = tmp_path / "anew"
    small = ac.loads(SCENARIO.replace("repeats = 3", "repeats = 1"), "small.toml")
    ac.sweep(small, out=folder, metrics=["jain"])
    (folder / "notes.txt").write_text("mine")
    (folder / "mine.parquet").write_bytes(b"PAR1")
    found = ac.sweep(small, out=folder, metrics=["utilisation", "goodput_flow_bps"], seeds=[5], restart=True)
    assert found.table["seed"].to_list() == [5] * 4
    keys = ["network.queue.limit", "network.queue.limit_p", "flows[0].count"]
    assert found.table.columns[3:] == [*keys, "utilisation", "goodput_flow_bps"]
    assert [len(flows) for flows in found.table["goodput_flow_bps"]] == [1, 2, 1, 2]
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "mine.parquet").read_bytes() == b"PAR1"


def test_samples_are_kept_on_request(tmp_path):
    small = ac.loads(SCENARIO.split("[sweep]", maxsplit=1)[0].replace("repeats = 3", "repeats = 1"), "small.toml")
    found = ac.sweep(small, metrics=["jain"], samples=True)
    assert (
        found.scan("flow_samples")
        .collect()
        .equals(
            ac.run(small.plan())
            .flow_samples.with_columns(pl.lit(0, pl.UInt32).alias("point"))
            .select(found.scan("flow_samples").collect().columns)
        )
    )
    assert {"drop", "established"} <= set(found.scan("events").collect()["kind"].cast(str))


def test_a_foreign_folder_is_not_changed(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    for restart in (False, True):
        with pytest.raises(
            ac.InputError, match="found something that is not an ackclock result, which .*; expected another folder"
        ):
            ac.sweep(ac.loads(SCENARIO), out=tmp_path, restart=restart)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_processes_do_not_share_a_folder(tmp_path):
    job = prepare(ac.loads(SCENARIO), out=tmp_path / "x")
    with (
        Parts(tmp_path / "x", job.spec),
        pytest.raises(ac.InputError, match="found another ackclock at work in it; expected another folder"),
    ):
        job.perform()


def test_a_metric_is_selected_without_its_unit_and_computed_a_single_time():
    assert chosen_metrics(["queue_delay_mean", "jain", "queue_delay_mean_s", "goodput", "queue_mean"]) == (
        "queue_delay_mean_s",
        "jain",
        "goodput_bps",
        "queue_mean_p",
    )


def test_mistakes_are_rejected_before_anything_runs(tmp_path):
    out = tmp_path / "x"
    with pytest.raises(ac.InputError, match='metrics: found "jane"; expected "jain"'):
        ac.sweep(ac.loads(SCENARIO), out=out, metrics=["jane"])
    with pytest.raises(ac.InputError, match="metrics: found none; expected one or more"):
        ac.sweep(ac.loads(SCENARIO), out=out, metrics=[])
    with pytest.raises(ac.InputError, match="seeds: found"):
        ac.sweep(ac.loads(SCENARIO), out=out, seeds=[1, 1])
    with pytest.raises(ac.ScenarioError, match="x.toml:18: sweep"):
        ac.sweep(ac.loads(SCENARIO.replace('"8p"', '"8x"'), "x.toml"), out=out)
    with pytest.raises(ac.InputError, match='engine: found "pocket"'):
        ac.sweep(ac.loads(SCENARIO), "pocket", out=out)
    assert not out.exists()


FAILING = """
import sys
from ackclock.engines import packet
from ackclock.experiments.sweep import run as sweeps
sweeps.MAX_IN_TASK = 1
run = packet.PacketEngine.run
def fails(self, plan, seed, options=None):
    if seed == 3 and plan.links[0].queue.parameters["limit_packets"] == 8:
        raise ZeroDivisionError("oh")
    return run(self, plan, seed, options)
packet.PacketEngine.run = fails
import ackclock as ac
if __name__ == "__main__":
    try:
        ac.sweep(sys.argv[1], out=sys.argv[2], jobs=1)
    except ac.AckclockError as error:
        print(error)
"""


def test_a_run_that_fails_is_named_and_what_was_done_is_kept(place, uninterrupted, tmp_path):
    (tmp_path / "failing.py").write_text(FAILING)
    command = [sys.executable, tmp_path / "failing.py", place / "small.toml", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    mixed = prepare(place / "small.toml").runs.mixed()
    first = next(number for number, run in enumerate(mixed) if run.point >= 2 and run.seed == 3)
    assert done.stdout == f"point {mixed[first].point}, seed 3: ZeroDivisionError: oh\n"
    kept = runs_in(tmp_path / "out")
    assert {run.number for run in mixed[:first]} <= kept
    assert mixed[first].number not in kept
    ac.sweep(place / "small.toml", out=tmp_path / "out")
    assert bytes_of(tmp_path / "out") == bytes_of(uninterrupted.folder)


def test_a_deterministic_engine_runs_each_point_a_single_time():
    text = (ROOT / "scenarios" / "random-loss.toml").read_text() + '[sweep]\n"network.rtt" = ["20ms", "50ms"]\n'
    found = ac.sweep(ac.loads(text), engine="theory", seeds=[3, 4, 5], metrics=["goodput_bps"])
    assert found.table["seed"].to_list() == [3, 3]
    assert found.table["goodput_bps"].is_not_null().all()


def test_models_of_many_runs_in_one_call_give_what_one_run_gives(tmp_path):
    text = SCENARIO.replace("1Mbit", "100Mbit").replace("2s", "20s").replace('"2p", "8p"', '"0.5bdp", "1bdp"')
    swept = ac.sweep(ac.loads(text), engine="fluid", out=tmp_path / "one", jobs=1)
    ac.sweep(ac.loads(text), engine="fluid", out=tmp_path / "two", jobs=2)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")
    alone = ac.run(ac.loads(text).point(3).plan, "fluid").metrics()["runs"]
    rows = swept.table.filter(pl.col("point") == 3)
    for name in ("utilisation", "queue_delay_mean_s", "goodput_bps", "synchronisation"):
        assert rows[name].to_list() == pytest.approx([run["metrics"][name] for run in alone], rel=0.01), name


#: A minute of work on any machine.
LONG = SCENARIO.replace("repeats = 3", "repeats = 300").replace("2s", "60s")


@pytest.fixture
def begun(tmp_path):
    """A long sweep from the command line, at work."""
    (tmp_path / "long.toml").write_text(LONG)
    command = [sys.executable, "-m", "ackclock", "sweep", "long.toml", "--out", "out", "--jobs", "2"]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert soon(lambda: len(workers(process.pid)) == 2)
        assert soon(lambda: runs_in(tmp_path / "out"))
        yield process
    finally:
        process.kill()


def test_a_killed_process_is_reported_in_one_line(tmp_path, begun):
    os.kill(workers(begun.pid)[0], signal.SIGKILL)
    _, told = begun.communicate(timeout=60)
    assert begun.returncode == 1
    assert told.startswith("a process of the sweep was killed, perhaps for lack of memory; what is done is kept")
    assert told.count("\n") == 1
    assert runs_in(tmp_path / "out")


def test_an_interrupt_keeps_finished_runs_and_explains_how_to_continue(tmp_path, begun):
    os.killpg(begun.pid, signal.SIGINT)
    _, told = begun.communicate(timeout=60)
    assert begun.returncode == 130
    assert told == "interrupted; finished runs are kept in out: the same command resumes\n"
    assert runs_in(tmp_path / "out")
    assert has_ended(begun.pid)
