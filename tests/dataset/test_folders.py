"""Results appear complete or not at all, and nothing is left behind: private folders, links, full disks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
import synthetic
from small_networks import dumbbell

from ackclock.dataset import Dataset, Spool, folders
from ackclock.errors import InputError
from ackclock.system import files


def small(seed: int = 1) -> Dataset:
    rows = {"flows": synthetic.flows(2), "events": synthetic.drops([1.0, 2.0], [0, 1]), "links": synthetic.link()}
    return synthetic.dataset(synthetic.plan(rate_bps=1e7, duration_s=10), rows, seed)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def seed_of(folder: Path) -> int:
    return int(Dataset.read(folder).runs[0]["seed"])


def abandoned(place: Path) -> Path:
    """A private place of a process that was killed."""
    code = (
        "import os, sys, pathlib\nfrom ackclock.system.files import LockedTempDir\n"
        "made = LockedTempDir(pathlib.Path(sys.argv[1]))\n"
        "(made.path / 'part').write_text('59 MB')\nprint(made.path, flush=True)\nos.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(place)], capture_output=True, text=True, check=False)
    assert done.returncode == -9
    return Path(done.stdout.strip())


def test_what_a_killed_process_has_left_goes_with_the_next_one(tmp_path):
    left = abandoned(tmp_path)
    assert names(tmp_path) == [left.name]
    assert files.is_temporary(left)
    living = files.LockedTempDir(tmp_path)
    assert not left.exists()
    small().write(tmp_path / "result")
    assert names(tmp_path) == [living.path.name, "result"], "the living one's stays"
    living.close()
    assert names(tmp_path) == ["result"]


def test_what_only_reads_like_a_private_place_stays(tmp_path):
    others = [".ackclock", ".ackclock-0123", ".ackclock-0123456789abcdeg", ".x.01234567.tmp", "x-0123456789abcdef"]
    for name in others:
        (tmp_path / name).mkdir()
    (tmp_path / ".ackclock-0123456789abcdef").write_text("a file")
    files.remove_stale(tmp_path)
    assert len(names(tmp_path)) == len(others) + 1


def test_a_forked_process_does_not_remove_its_parents_place(tmp_path):
    with files.LockedTempDir(tmp_path) as place:
        process = os.fork()
        if process == 0:
            with suppress(BaseException):
                files._remove_locked(place, os.open(place, os.O_RDONLY), os.getppid())
            os._exit(0)
        os.waitpid(process, 0)
        assert place.exists()


def test_the_parts_of_a_spool_are_in_a_private_place(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = abandoned(tmp_path).rename(tmp_path / "ackclock-0123456789abcdef")
    spools = [Spool(spool_bytes=10) for _ in range(20)]
    for spool in spools:
        spool.append("flows", synthetic.flows(3))
    data = [spool.dataset({"runs": []}) for spool in spools]
    assert not left.exists()
    assert len(names(tmp_path)) == 1, "one for the process, since each holds a descriptor"
    assert (tmp_path / names(tmp_path)[0]).stat().st_mode & 0o777 == 0o700
    assert len(names(tmp_path / names(tmp_path)[0])) == 20
    del spools, spool, data
    assert names(tmp_path) == []


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk" / "result")
    for seed in (1, 2):  # the link dangles at first
        assert small(seed).write(tmp_path / "out") == tmp_path / "out"
        assert (tmp_path / "out").is_symlink()
        assert seed_of(tmp_path / "disk" / "result") == seed
        (tmp_path / "out" / "notes.txt").write_text("mine")
    assert (tmp_path / "disk" / "result" / "notes.txt").read_text() == "mine"
    assert names(tmp_path) == ["disk", "out"]
    assert names(tmp_path / "disk") == ["result"]


def test_a_file_behind_a_link_is_replaced(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "report.html").symlink_to(tmp_path / "disk" / "real")
    folders.atomic_write(tmp_path / "report.html", lambda new: new.write_text(new.suffix))
    assert (tmp_path / "report.html").is_symlink()
    assert (tmp_path / "disk" / "real").read_text() == ".html"


def test_links_in_a_circle_are_one_line(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(InputError, match="a: (cannot be written|found)"):
        small().write(tmp_path / "a")


def test_notes_of_all_kinds_are_present_at_any_time(tmp_path, monkeypatch):
    place = small(1).write(tmp_path / "result")
    (place / "figures" / "deep").mkdir(parents=True)
    (place / "figures" / "deep" / "one.png").write_text("mine")
    (place / "figures").chmod(0o700)
    (place / "notes.txt").write_text("mine")
    (place / "link").symlink_to("notes.txt")
    swap = folders._swap

    def swapped(new: Path, old: Path) -> None:
        assert (new / "figures" / "deep" / "one.png").read_text() == "mine"
        assert (new / "link").readlink() == Path("notes.txt")
        (old / "notes.txt").unlink()
        (old / "notes.txt").write_text("edited in the last moment")
        swap(new, old)

    monkeypatch.setattr(folders, "_swap", swapped)
    small(2).write(place)
    assert seed_of(place) == 2
    assert (place / "notes.txt").read_text() == "edited in the last moment"
    assert (place / "link").is_symlink()
    assert (place / "figures").stat().st_mode & 0o777 == 0o700
    assert (place / "figures" / "deep" / "one.png").read_text() == "mine"


def test_notes_are_copied_where_present_are_no_hard_links(tmp_path, monkeypatch):
    def reject(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    place = small(1).write(tmp_path / "result")
    (place / "notes.txt").write_text("mine")
    monkeypatch.setattr(os, "link", reject)
    small(2).write(place)
    assert (place / "notes.txt").read_text() == "mine"


def test_a_kill_between_the_two_steps_of_a_swap_loses_nothing(tmp_path, monkeypatch):
    place = small(1).write(tmp_path / "result")
    (place / "notes.txt").write_text("mine")
    place.rename(tmp_path / "result.previous")
    monkeypatch.setattr(folders, "_swap", folders._swap_in_steps)
    small(2).write(place)
    assert seed_of(place) == 2
    assert (place / "notes.txt").read_text() == "mine"
    assert names(tmp_path) == ["result"]


def test_of_several_writers_one_wins_complete(tmp_path):
    """The table of the result has as many rows as its manifest says, at any time."""
    data = [synthetic.dataset(small().manifest["plan"], {"flows": synthetic.flows(n)}, n) for n in (1, 2, 3)]
    place, failed = tmp_path / "result", []

    def write(one: Dataset) -> None:
        try:
            for _ in range(15):
                one.write(place)
        except Exception as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(one,)) for one in data]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        if (place / "manifest.json").exists():
            with suppress(InputError):  # replaced while it was read
                outcome = Dataset.read(place)
                assert outcome.flows.height == outcome.runs[0]["seed"]
    assert not failed
    assert Dataset.read(place).flows.height == seed_of(place)
    assert names(tmp_path) == ["result"]


#: Run where the file system at argv[1] is a small one, or may not be written.
NO_ROOM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import numpy as np, synthetic
from click.testing import CliRunner
from ackclock.cli.program import application
from ackclock.dataset import Dataset, Spool
from ackclock.errors import InputError

place = Path(sys.argv[1])
SCENARIO = Path(sys.argv[3])

def told(what):
    try:
        what()
    except InputError as error:
        print(str(error))
    else:
        print("nothing was wrong")

spool = Spool(names=synthetic.NAMES)
times = np.random.default_rng(1).random(400_000)
spool.append("flow_samples", {"time_s": times, "flow": np.zeros(times.size, np.uint32), "cwnd": times})
large = spool.dataset(synthetic.manifest(synthetic.plan(rate_bps=1e7, duration_s=10)))
told(lambda: large.write(place / "old"))
told(lambda: large.write(place / "new"))
def full():
    spool = Spool(place / "spool", spool_bytes=10)
    spool.append("flow_samples", {"time_s": times, "flow": np.zeros(times.size, np.uint32), "cwnd": times})
told(full)
for arguments in (
    ["run", str(SCENARIO), "--out", str(place / "old")],
    ["plot", str(place / "old"), "cwnd"],
    ["plot", str(place / "old"), "cwnd", "--out", str(place / "x.pdf")],
    ["report", str(place / "old")],
    ["sweep", str(SCENARIO), "--jobs", "1", "--out", str(place / "sweep")],
    ["compare", str(SCENARIO), "--engine", "packet,fluid", "--out", str(place / "compare")],
):
    done = CliRunner().invoke(application, arguments)
    said = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]  # of how much room there is
    print(done.exit_code, *said, type(done.exception).__name__)
print(Dataset.read(place / "old").runs[0]["seed"], sorted(path.name for path in place.iterdir()))
"""

SCENARIO = f"""\
duration = "20s"
repeats = 1
{dumbbell("5Mbit", "20ms")}
[[flows]]
count = 2
congestion = "cubic"
[record]
interval = "1ms"
pcap = true
"""


def in_namespace(tmp_path: Path, mount: str) -> list[str]:
    """Run the program above in a separate namespace where `place` is mounted so; return its output."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("this machine does not let us have a mount namespace")
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "no_room.py").write_text(NO_ROOM)
    synthetic.sawtooth(flow_count=2, seeds=1, duration_s=5, warmup_s=1).write(tmp_path / "old")
    program = [sys.executable, str(tmp_path / "no_room.py"), str(place), str(Path(__file__).parents[1])]
    steps = f'set -e; cd {tmp_path}; {mount}; exec "$@"'
    command = ["unshare", "-rm", "bash", "-c", steps, "-", *program, str(tmp_path / "scenario.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace(f"{place}/", "").splitlines()


def test_a_full_disk_is_one_line_with_the_path(tmp_path):
    mount = "mount -t tmpfs -o size=600k tmpfs place; cp -r old place"
    *reported, last = in_namespace(tmp_path, mount)
    full = "cannot be written: No space left on device"
    parts = ("old", "new", "spool/flow_samples-0-0000.parquet")
    commands = (
        r".ackclock-\w+/captures/seed-1.pcap",
        "old/cwnd.png",
        "x.pdf",
        "old/report.html",
        "sweep/manifest.json",
    )
    expected = [*parts, *(f"2 {path}" for path in commands), "2 compare.*"]
    assert len(reported) == len(expected), reported
    for line, path in zip(reported, expected, strict=True):
        message = line.removesuffix(" SystemExit").removesuffix(", or another error of the disk")
        assert re.fullmatch(f"{path}: {full}", message), (line, path)
    assert last == "1 ['old', 'spool', 'sweep']", "the old result is whole, and no private place is left"


def test_a_footer_that_polars_cannot_write_names_the_disk(tmp_path):
    reason = "No space left on device, or another error of the disk"
    with pytest.raises(InputError, match=f"cannot be written: {reason}$"), folders.write_errors(tmp_path):
        raise pl.exceptions.ComputeError("parquet: File out of specification: Invalid thrift: transport error")


def test_a_read_only_folder_is_one_line_with_the_path(tmp_path):
    mount = "cp -r old place; mount --bind place place; mount -o remount,ro,bind place"
    *reported, last = in_namespace(tmp_path, mount)
    refused = "cannot be written: Read-only file system"
    paths = ("old", "new", "spool", "2 old", "2 old/cwnd.png", "2 x.pdf", "2 old/report.html", "2 sweep", "2 compare")
    assert [line.removesuffix(" SystemExit") for line in reported] == [f"{path}: {refused}" for path in paths]
    assert last == "1 ['old']"
