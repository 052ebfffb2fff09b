"""Measure how fast a disk reads and writes, by block size, and whether it could keep up with a capture.

Belhareth (2014, section 4.3) looked for the cause of stalls in captures, and found disks that could not follow; what
`dd` said of them depended on whether the system's cache was measured with them. Here everything is measured both ways,
in turns, so that a disk that others use too is as fast for the one as for the other.
"""

from __future__ import annotations

import errno
import mmap
import os
import random
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from ackclock.dataset.tables import DISK_OPERATIONS, Column
from ackclock.doctor.settings import Finding
from ackclock.errors import InputError
from ackclock.figures import numbers
from ackclock.system.files import readable

#: Blocks in bytes, how much is written or read of them at a time, and how often.
BLOCKS_BYTES = (4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
AMOUNT_BYTES, REPEATS = 16 << 20, 10

#: No measurement takes much longer than this, in seconds: of a slow disk it is one of fewer blocks.
LONGEST_S = 2.0

#: Share of the free space that is used at most.
OF_FREE = 0.1

#: Captured bytes of each packet, and the size of packets at full speed, in bytes.
SNAPLEN_BYTES, PACKET_BYTES = 96, 1500

#: A capture is written by a program with other work to do: a disk is called fast enough from so many times its need on.
ROOM = 2.0

#: Advice for a slow disk; and the duration, in seconds, from which a single call is reported.
SLOWLY, STALLED_S = "Capture less of each packet (tcpdump -s), or to another disk or a tmpfs.", 1.0

Progress = Callable[[float], object]


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of measurement; `cached` calls end in the page cache, others at the disk."""

    operation: str
    target: str
    cached: bool
    block_bytes: int


@dataclass(frozen=True, slots=True)
class Target:
    """File or device under test: its name for messages, its descriptor, and the bytes of one measurement."""

    path: Path
    descriptor: int
    amount_bytes: int


@dataclass(frozen=True, slots=True)
class Disk:
    """Measurements in a folder, and of a device: one row for each repeat of each cell, in the order of time."""

    folder: Path
    device: Path | None
    rows: pl.DataFrame

    def columns(self) -> dict[str, Column]:
        """Return the rows of the table `disk`."""
        return {
            name: self.rows[name].to_list() if name in ("operation", "target") else self.rows[name].to_numpy()
            for name in self.rows.columns
        }

    def speeds(self) -> pl.DataFrame:
        """Return bytes/s of each cell: median, least and most of the repeats; and the longest call, in seconds."""
        speed = pl.col("bytes") / pl.col("duration_s")
        by = ("target", "operation", "cached", "block_bytes")
        measurement = self.rows.group_by(by).agg(
            median=speed.median(), least=speed.min(), most=speed.max(), longest_call_s=pl.col("call_max_s").max()
        )
        return measurement.sort("target", "operation", "cached", "block_bytes", descending=[True, True, True, False])

    def slowest_write(self) -> Mapping[str, Any]:
        """Return the speeds of uncached writes to a file, of the block size with the best median."""
        reached = (pl.col("operation") == "write") & ~pl.col("cached") & (pl.col("target") == "file")
        return self.speeds().filter(reached).sort("median").row(-1, named=True)

    def as_dict(self, rate_bps: float) -> dict[str, Any]:
        """Return the JSON object."""
        required_bytes_s = capture_bytes_s(rate_bps)
        return {
            "folder": str(self.folder),
            "device": str(self.device) if self.device else None,
            "capture": {"rate_bps": rate_bps, "snaplen_bytes": SNAPLEN_BYTES, "needs_bytes_s": required_bytes_s},
            "speeds": list(self.speeds().iter_rows(named=True)),
        }

    def findings(self, rate_bps: float) -> Iterator[Finding]:
        """Yield whether a capture at a rate could be written here, and whether single calls stall."""
        yield self._for_captures(rate_bps)
        slowest = self.rows.filter(pl.col("target") == "file")["call_max_s"].max()
        if isinstance(slowest, float) and slowest > STALLED_S:
            sentence = (
                f"One call took {numbers.value(slowest, 's')}: a process that writes here is blocked for as long."
            )
            advice = "Write captures from a separate process."
            yield Finding("disk", sentence, {"call_max_s": slowest}, advice, bad=True)

    def _for_captures(self, rate_bps: float) -> Finding:
        required_bytes_s, best = capture_bytes_s(rate_bps), self.slowest_write()
        takes = f"{_speed(best['median'])} that reach it ({_speed(best['least'])} at worst, in blocks of "
        takes += f"{numbers.block(best['block_bytes'])})"
        demand = f"a capture of {numbers.value(rate_bps, 'bit/s')} with {SNAPLEN_BYTES} bytes of each packet needs"
        sentence = f"The disk under {readable(self.folder)} takes {takes}; {demand} {_speed(required_bytes_s)}."
        evidence = {
            "needs_bytes_s": required_bytes_s,
            "written_bytes_s": best["median"],
            "least_bytes_s": best["least"],
        }
        slow = best["least"] < ROOM * required_bytes_s
        return Finding("disk", sentence, evidence, SLOWLY if slow else "", bad=slow)


def capture_bytes_s(rate_bps: float) -> float:
    """Return the bytes/s of a capture of full packets: rate/8 × snaplen/1500 (Belhareth 2014, 4.3.3)."""
    return rate_bps / 8 * SNAPLEN_BYTES / PACKET_BYTES


def _speed(bytes_s: float) -> str:
    return f"{numbers.value(bytes_s, 'bytes')}/s"


def measure(
    folder: Path,
    *,
    device: Path | None = None,
    force: bool = False,
    repeats: int = REPEATS,
    blocks_bytes: Sequence[int] = BLOCKS_BYTES,
    amount_bytes: int = AMOUNT_BYTES,
    report_progress: Progress = lambda _: None,
) -> Disk:
    """Write and read an unnamed file in a folder, which is gone when this ends, however it does.

    A tenth of the room that is left is taken at most. `device` is read as well, from its beginning; with `force` it is
    also *written* there, and what it held is lost. The order of the measurements is drawn anew for each repeat, always
    in the same way.

    Raises `InputError` for a folder that cannot be written, has too little room, or a device that is none, in use or
    shorter than a block.
    """
    fitting = room_for(folder, amount_bytes, max(blocks_bytes))
    with _unnamed(folder) as file, _opened(device, force) as raw:
        targets = {"file": Target(folder, file, fitting)}
        if device is not None and raw is not None:
            targets["device"] = Target(device, raw, min(amount_bytes, _length(device, raw, max(blocks_bytes))))
        rows = _measured(_cells(targets, blocks_bytes, force=force), targets, repeats, report_progress)
    return Disk(folder, device, rows)


def _cells(targets: Iterable[str], blocks_bytes: Sequence[int], *, force: bool) -> list[Cell]:
    """List all measurements: a device is written only if that is forced."""
    every = product(targets, DISK_OPERATIONS, (True, False), blocks_bytes)
    cells = [Cell(operation, target, cached, block) for target, operation, cached, block in every]
    return [cell for cell in cells if cell.target == "file" or cell.operation == "read" or force]


def _measured(
    cells: Sequence[Cell], targets: Mapping[str, Target], repeats: int, report_progress: Progress
) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    begun_s = time.monotonic()
    draw = random.Random(1)
    for repeat in range(repeats):
        for cell in draw.sample(cells, len(cells)):
            report_progress(len(rows) / (repeats * len(cells)))
            at_s, target = time.monotonic() - begun_s, targets[cell.target]
            try:
                measurement = _measure_cell(cell, target.descriptor, target.amount_bytes)
            except OSError as error:
                raise InputError(f"{readable(target.path)}: {cell.operation}: {error.strerror}") from error
            rows.append({"time_s": at_s, "repeat": repeat, **_as_row(cell), **measurement})
    return pl.DataFrame(rows)


def _as_row(cell: Cell) -> dict[str, Any]:
    return {name: getattr(cell, name) for name in Cell.__slots__}


def _measure_cell(cell: Cell, descriptor: int, amount_bytes: int) -> dict[str, Any]:
    """Take one measurement. Preparation and cleaning up are not part of the time."""
    count = max(amount_bytes // cell.block_bytes, 1)
    return (_read if cell.operation == "read" else _written)(cell, descriptor, count)


def _read(cell: Cell, descriptor: int, count: int) -> dict[str, Any]:
    _prepare_reading(cell, descriptor, count)
    return _calls(lambda at, block: os.preadv(descriptor, [block], at), cell, count)


def _written(cell: Cell, descriptor: int, count: int) -> dict[str, Any]:
    if cell.target == "file":
        os.ftruncate(descriptor, 0)
    measurement = _calls(lambda at, block: os.pwrite(descriptor, block, at), cell, count)
    synced_s = _timed(lambda: os.fdatasync(descriptor))
    if cell.cached:
        return measurement
    longest_s = max(measurement["call_max_s"], synced_s)
    return {**measurement, "duration_s": measurement["duration_s"] + synced_s, "call_max_s": longest_s}


def _prepare_reading(cell: Cell, descriptor: int, count: int) -> None:
    if cell.target == "file":
        _fill(descriptor, count * cell.block_bytes)
    if cell.cached:
        _take_into_cache(descriptor, count * cell.block_bytes)
    else:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _fill(descriptor: int, size_bytes: int) -> None:
    """Make a file of this length whose blocks are on the disk."""
    if os.fstat(descriptor).st_size < size_bytes:
        os.pwrite(descriptor, os.urandom(size_bytes), 0)
    os.fdatasync(descriptor)


def _take_into_cache(descriptor: int, size_bytes: int) -> None:
    for at in range(0, size_bytes, 1 << 20):
        os.pread(descriptor, 1 << 20, at)


def _calls(call: Callable[[int, mmap.mmap], int], cell: Cell, count: int) -> dict[str, Any]:
    """Transfer `count` blocks one after the other, or as many as there is time for."""
    moved = longest_ns = 0
    with mmap.mmap(-1, cell.block_bytes) as block:
        block.write(os.urandom(cell.block_bytes))  # a disk that compresses, or leaves out zeros, is to be none
        begun_ns = now_ns = time.perf_counter_ns()
        until_ns = begun_ns + int(1e9 * LONGEST_S)
        for number in range(count):
            moved += call(number * cell.block_bytes, block)
            before_ns, now_ns = now_ns, time.perf_counter_ns()
            longest_ns = max(longest_ns, now_ns - before_ns)
            if now_ns > until_ns:
                break
    return {"bytes": moved, "duration_s": 1e-9 * max(now_ns - begun_ns, 1), "call_max_s": 1e-9 * longest_ns}


def _timed(call: Callable[[], object]) -> float:
    begun_ns = time.perf_counter_ns()
    call()
    return 1e-9 * (time.perf_counter_ns() - begun_ns)


def room_for(folder: Path, amount_bytes: int = AMOUNT_BYTES, max_block_bytes: int = BLOCKS_BYTES[-1]) -> int:
    """Return how many bytes may be written there, up to an amount. Raises `InputError` if below a block."""
    free_bytes = _free_bytes(folder)
    fitting = min(amount_bytes, int(OF_FREE * free_bytes))
    if fitting < max_block_bytes:
        raise InputError(
            f"{readable(folder)}: found {numbers.value(free_bytes, 'bytes')} of room; expected "
            f"{numbers.value(max_block_bytes / OF_FREE, 'bytes')} or more"
        )
    return fitting


def _free_bytes(folder: Path) -> int:
    try:
        room = os.statvfs(folder)
    except OSError as error:
        raise InputError(f"{readable(folder)}: found {error.strerror}; expected a folder") from error
    return room.f_bavail * room.f_frsize


@contextmanager
def _unnamed(folder: Path) -> Iterator[int]:
    """Open an unnamed file, of which nothing is left whatever ends the process."""
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            raise InputError(f"{readable(folder)}: found {error.strerror}; expected a folder to write in") from error
        descriptor = _unlinked(folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _unlinked(folder: Path) -> int:
    """Open and unlink a file, for file systems without O_TMPFILE."""
    path = folder / f".ackclock-disk-{os.getpid()}"
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        path.unlink()
    except OSError as error:
        raise InputError(f"{readable(folder)}: found {error.strerror}; expected a folder to write in") from error
    return descriptor


def _length(device: Path, descriptor: int, max_block_bytes: int) -> int:
    """Return a device's length in bytes. Raises `InputError` if a block does not fit: an empty drive has none."""
    length_bytes = os.lseek(descriptor, 0, os.SEEK_END)
    if length_bytes < max_block_bytes:
        raise InputError(
            f"{readable(device)}: found a device of {numbers.value(length_bytes, 'bytes')}; expected "
            f"{numbers.value(max_block_bytes, 'bytes')} or more"
        )
    return length_bytes


@contextmanager
def _opened(device: Path | None, force: bool) -> Iterator[int | None]:
    if device is None:
        yield None
        return
    try:
        if not stat.S_ISBLK(device.stat().st_mode):
            raise InputError(f"{readable(device)}: found no block device; expected one, such as /dev/sdb")
        # Of a block device O_EXCL means: not if it is mounted or in use otherwise (open(2)).
        descriptor = os.open(device, os.O_RDWR | os.O_EXCL if force else os.O_RDONLY)
    except OSError as error:
        in_use = error.errno == errno.EBUSY
        measurement = "a device that is in use" if in_use else str(error.strerror)
        raise InputError(f"{readable(device)}: found {measurement}; expected a block device to open") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
