"""Measurement of B4.dd: the disk below the system's temporary files, block by block, with its cache and without."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ackclock import doctor
from ackclock.dataset import Dataset
from ackclock.doctor import disk

#: The thesis repeats each test ten times; a look does twice, with a sixteenth of the data.
REPEATS, QUICK = 10, 2


def examine(*, quick: bool, blocks_bytes: Sequence[int] = disk.BLOCKS_BYTES) -> Dataset:
    """The table `disk`, of blocks of these sizes. Nothing is left behind."""
    amount_bytes = disk.AMOUNT_BYTES // (16 if quick else 1)
    repeats, place = QUICK if quick else REPEATS, Path(tempfile.gettempdir())
    found = disk.measure(place, repeats=repeats, blocks_bytes=blocks_bytes, amount_bytes=amount_bytes)
    return doctor.examined(disk=found).data
