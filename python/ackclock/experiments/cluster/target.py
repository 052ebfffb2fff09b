"""Target of an experiment: a scheduler's address, or workers that are started for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ackclock.errors import InputError
from ackclock.input.fields import nearest, shown

#: Kinds of clusters: this machine, or a site's batch system by its class in `dask_jobqueue`.
KINDS = {
    "local": None,
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "lsf": "LSFCluster",
    "oar": "OARCluster",
    "moab": "MoabCluster",
    "htcondor": "HTCondorCluster",
}

#: Most workers that are started.
MAX_WORKERS = 10_000

_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://[^\s/]+:\d{1,5}", re.ASCII)
_STARTED = re.compile(r"([a-z]+):([1-9]\d{0,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Place:
    """A scheduler's address; or else a key of `KINDS` and how many workers are to be started."""

    address: str = ""
    kind: str = ""
    workers: int = 0

    def __str__(self) -> str:
        return self.address or f"{self.kind}:{self.workers}"

    @property
    def option(self) -> str:
        """The option of the command line that says it."""
        return "--scheduler" if self.address else "--cluster"


def place(scheduler: str | None, cluster: str | None) -> Place | None:
    """Parse the options `--scheduler` and `--cluster`; None without them. Raises `InputError`."""
    if scheduler is not None and cluster is not None:
        raise InputError("--scheduler: found --cluster beside it; expected one of them")
    if scheduler is not None:
        return _at(scheduler)
    return None if cluster is None else _started(cluster)


def _at(address: str) -> Place:
    if not _ADDRESS.fullmatch(address):
        raise InputError(f'--scheduler: found {shown(address)}; expected an address such as "tcp://192.0.2.1:8786"')
    return Place(address=address)


def _started(text: str) -> Place:
    kind = text.partition(":")[0]
    if kind not in KINDS:
        raise InputError(f"--cluster: found {shown(text)}; expected {nearest(kind, tuple(KINDS))}, with a number")
    match = _STARTED.fullmatch(text)
    if match is None or int(match[2]) > MAX_WORKERS:
        raise InputError(f'--cluster: found {shown(text)}; expected how many workers, such as "{kind}:8"')
    return Place(kind=kind, workers=int(match[2]))
