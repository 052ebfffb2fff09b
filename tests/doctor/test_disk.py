"""Measurement of a disk's speed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


def test_every_cell_is_measured_as_often_as_requested_in_turns(tmp_path):
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
        "disk.measure(Path(sys.argv[1]), repeats=1000, report_progress=lambda share: print(share, flush=True))"
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


def test_folders_and_devices_that_are_none_are_rejected(tmp_path):
    with pytest.raises(InputError, match="found No such file or directory; expected a folder"):
        measured(tmp_path / "none")
    for none in (tmp_path, Path("/dev/null")):
        with pytest.raises(InputError, match=r"found no block device; expected one, such as /dev/sdb$"):
            disk.measure(tmp_path, device=none, repeats=1)
    with pytest.raises(InputError, match="No such file or directory; expected a block device"):
        disk.measure(tmp_path, device=tmp_path / "none")


@contextmanager
def loop_device(file: Path, *options: str) -> Iterator[Path]:
    """A block device whose medium is a file."""
    made = subprocess.run(["losetup", "--show", *options, "-f", str(file)], capture_output=True, text=True, check=True)
    name = made.stdout.strip()
    try:
        yield Path(name)
    finally:
        subprocess.run(["losetup", "-d", name], check=True)


def no_loop_devices() -> str | None:
    """Why there can be none here."""
    if os.geteuid() != 0 or not shutil.which("losetup"):
        return "a loop device needs root and losetup"
    result = subprocess.run(["losetup", "-f"], capture_output=True, text=True, check=False)
    return None if result.returncode == 0 and Path(result.stdout.strip()).is_block_device() else "no loop device here"


on_a_device = pytest.mark.skipif(no_loop_devices() is not None, reason=no_loop_devices() or "")

MEDIUM = bytes(range(256)) * 8192  # 2 MiB


@pytest.fixture
def medium(tmp_path):
    file = tmp_path / "medium"
    file.write_bytes(MEDIUM)
    return file


@pytest.mark.oracle
@on_a_device
def test_a_device_is_only_read_unless_forced(tmp_path, medium):
    with loop_device(medium) as device:
        result = disk.measure(tmp_path, device=device, repeats=2, blocks_bytes=BLOCKS, amount_bytes=1 << 18).rows
    raw = result.filter(pl.col("target") == "device")
    assert raw["operation"].unique().to_list() == ["read"]
    assert raw.height == 2 * 2 * len(BLOCKS)
    assert raw["bytes"].unique().to_list() == [1 << 18]
    assert medium.read_bytes() == MEDIUM


@pytest.mark.oracle
@on_a_device
def test_a_device_is_written_from_its_beginning_if_forced(tmp_path, medium):
    with loop_device(medium) as device:
        result = disk.measure(
            tmp_path, device=device, force=True, repeats=2, blocks_bytes=BLOCKS, amount_bytes=1 << 18
        ).rows
    raw = result.filter(pl.col("target") == "device")
    assert sorted(raw["operation"].unique()) == ["read", "write"]
    assert raw.height == 2 * 2 * 2 * len(BLOCKS)
    now = medium.read_bytes()
    assert now[: 1 << 18] != MEDIUM[: 1 << 18]
    assert now[1 << 18 :] == MEDIUM[1 << 18 :]
    assert [path.name for path in tmp_path.iterdir()] == ["medium"]


@pytest.mark.oracle
@on_a_device
def test_of_a_short_device_no_more_than_present_is(tmp_path, medium):
    with loop_device(medium, "--sizelimit", "1048576") as device:
        result = disk.measure(tmp_path, device=device, force=True, repeats=1).rows
    raw = result.filter(pl.col("target") == "device")
    assert raw["bytes"].unique().to_list() == [1 << 20]
    assert medium.read_bytes()[1 << 20 :] == MEDIUM[1 << 20 :]
    with (
        loop_device(medium, "--sizelimit", "65536") as device,
        pytest.raises(InputError, match=rf"^{device}: found a device of 65.5 kB; expected 1.05 MB or more$"),
    ):
        disk.measure(tmp_path, device=device, force=True)


@pytest.mark.oracle
@on_a_device
def test_a_device_in_use_is_never_written(tmp_path, medium):
    with loop_device(medium) as device:
        taken = os.open(device, os.O_RDONLY | os.O_EXCL)  # as a file system that is mounted takes it
        try:
            with pytest.raises(InputError, match=r"found a device that is in use; expected a block device to open$"):
                disk.measure(tmp_path, device=device, force=True)
        finally:
            os.close(taken)
    with (
        loop_device(medium, "-r") as device,
        pytest.raises(InputError, match=rf"^{device}: (found|write: ).*$"),  # by kernel: when opened, or written
    ):
        disk.measure(tmp_path, device=device, force=True)
    assert medium.read_bytes() == MEDIUM


@pytest.mark.oracle
@on_a_device
def test_nothing_of_a_device_is_held_by_one_who_is_killed(tmp_path, medium):
    script = (
        "import sys; from pathlib import Path; from ackclock.doctor import disk\n"
        "at, device = map(Path, sys.argv[1:])\n"
        "disk.measure(at, device=device, force=True, repeats=1000, amount_bytes=1 << 20,"
        " report_progress=lambda share: print(share, flush=True))"
    )
    with loop_device(medium) as device:
        command = [sys.executable, "-c", script, str(tmp_path), str(device)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(10):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    assert [path.name for path in tmp_path.iterdir()] == ["medium"]


def test_what_a_capture_requires():
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


def test_a_call_that_appears_still_is_named():
    _, stood = disk_of(1e9, longest_s=1.5).findings(300e6)
    assert stood.sentence == "One call took 1.50 s: a process that writes here is blocked for as long."


def test_a_result_has_each_measurement(tmp_path):
    result = measured(tmp_path)
    examined = doctor.examined(disk=result, rate_bps=300e6)
    assert examined.data.frame("disk").height == result.rows.height
    assert examined.analysis["disk"]["capture"]["needs_bytes_s"] == pytest.approx(2.4e6)
