"""How fast a disk is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from ackclock import doctor
from ackclock.doctor import disk
from ackclock.errors import InputError

BLOCKS = (4096, 65536)


def measured(folder: Path, repeats: int = 2) -> disk.Disk:
    return disk.measure(folder, repeats=repeats, blocks_bytes=BLOCKS, amount_bytes=1 << 18)


def test_every_cell_is_measured_as_often_as_asked_in_turns(tmp_path):
    rows = measured(tmp_path, repeats=3).rows
    cells = rows.group_by("operation", "cached", "block_bytes").agg(pl.col("repeat").sort())
    assert cells.height == 2 * 2 * len(BLOCKS)
    assert all(repeats == [0, 1, 2] for repeats in cells["repeat"].to_list())
    assert rows["repeat"].is_sorted()
    assert rows["bytes"].unique().to_list() == [1 << 18]
    assert rows["duration_s"].min() > 0
    assert (rows["call_max_s"] <= rows["duration_s"]).all()
    assert not list(tmp_path.iterdir())


def test_the_order_is_drawn_and_always_the_same(tmp_path):
    names = ("operation", "cached", "block_bytes", "repeat")
    first, second = (measured(tmp_path).rows.select(names) for _ in range(2))
    assert first.equals(second)
    turns = first.drop("repeat").rows()
    assert turns[: len(turns) // 2] != turns[len(turns) // 2 :]


def test_nothing_is_left_by_one_who_is_killed(tmp_path):
    script = (
        "import sys; from pathlib import Path; from ackclock.doctor import disk\n"
        "disk.measure(Path(sys.argv[1]), repeats=1000, tell=lambda share: print(share, flush=True))"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(10):
            process.stdout.readline()
        assert not list(tmp_path.iterdir())
        process.send_signal(signal.SIGKILL)
    assert not list(tmp_path.iterdir())


def test_a_file_system_without_unnamed_files_has_none_left_either(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY | os.O_RDWR, raising=False)
    assert measured(tmp_path, repeats=1).rows.height == 8
    assert not list(tmp_path.iterdir())


def test_a_disk_is_never_filled(tmp_path, monkeypatch):
    room = SimpleNamespace(f_bavail=100, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    with pytest.raises(InputError, match=r"found 410 kB of room; expected 655 kB or more$"):
        measured(tmp_path)
    room.f_bavail = 200
    assert measured(tmp_path, repeats=1).rows["bytes"].max() <= 0.1 * 200 * 4096


def test_folders_and_devices_that_are_none_are_refused(tmp_path):
    with pytest.raises(InputError, match="found No such file or directory; expected a folder"):
        measured(tmp_path / "none")
    for none in (tmp_path, Path("/dev/null")):
        with pytest.raises(InputError, match=r"found no block device; expected one, such as /dev/sdb$"):
            disk.measure(tmp_path, device=none, repeats=1)
    with pytest.raises(InputError, match="No such file or directory; expected a block device"):
        disk.measure(tmp_path, device=tmp_path / "none")


def test_what_a_capture_needs():
    assert disk.capture_bytes_s(300e6) == pytest.approx(2.4e6)  # Belhareth 2014, section 4.3.3


def disk_of(speed_bytes_s: float, longest_s: float = 0.01) -> disk.Disk:
    row = {"time_s": 0.0, "repeat": 0, "operation": "write", "target": "file", "cached": False, "block_bytes": 4096}
    took = {"bytes": int(speed_bytes_s), "duration_s": 1.0, "call_max_s": longest_s}
    return disk.Disk(Path("/captures"), None, pl.DataFrame([row | took]))


def test_a_disk_that_cannot_follow_is_named():
    (slow,) = disk_of(3e6).findings(300e6)
    assert slow.bad
    assert slow.sentence == (
        "The disk under /captures takes 3.00 MB/s that reach it (3.00 MB/s at worst, in blocks of 4 KiB); a capture of "
        "300 Mb/s with 96 bytes of each packet needs 2.40 MB/s."
    )
    (fast,) = disk_of(5e6).findings(300e6)
    assert not fast.bad


def test_a_call_that_stands_still_is_named():
    _, stood = disk_of(1e9, longest_s=1.5).findings(300e6)
    assert stood.sentence == "One call took 1.50 s: whoever writes to this disk stands still for as long."


def test_a_result_has_each_measurement(tmp_path):
    found = measured(tmp_path)
    examined = doctor.examined(disk=found, rate_bps=300e6)
    assert examined.data.frame("disk").height == found.rows.height
    assert examined.answers["disk"]["capture"]["needs_bytes_s"] == pytest.approx(2.4e6)
