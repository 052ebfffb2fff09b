"""What B4.dd measures: the disk below the system's temporary files, block by block, with its cache and without."""

import tempfile
from pathlib import Path

from ackclock import doctor
from ackclock.dataset import Dataset
from ackclock.doctor import disk

#: The thesis repeats each test ten times; a look does twice, with a sixteenth of the data.
REPEATS, QUICK = 10, 2


def examine(*, quick: bool) -> Dataset:
    """The table `disk`. Nothing is left behind."""
    amount_bytes = disk.AMOUNT_BYTES // (16 if quick else 1)
    found = disk.measure(Path(tempfile.gettempdir()), repeats=QUICK if quick else REPEATS, amount_bytes=amount_bytes)
    return doctor.examined(disk=found).data
