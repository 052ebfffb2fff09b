"""This host: whether its clock stands still, what its disk can do, and which of its settings hold transfers back.

Each part measures and gives a dataclass; its `findings` say in sentences what is worth a word. `examined` has all parts
as a dataset (`clock_gaps`, `disk`) and as answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ackclock import _core
from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import CLOCK_GAPS, DISK_OPERATIONS, DISK_TARGETS
from ackclock.doctor import settings
from ackclock.doctor.disk import Disk
from ackclock.doctor.finding import Finding
from ackclock.doctor.settings import Settings
from ackclock.doctor.stalls import Stalls

__all__ = ["Examined", "Finding", "examined"]

#: Words behind integer codes.
NAMES = {"clock_gaps.class": CLOCK_GAPS, "disk.operation": DISK_OPERATIONS, "disk.target": DISK_TARGETS}


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found of a host: tables, answers as `--json` has them, and sentences."""

    data: Dataset
    answers: Mapping[str, Any]
    findings: tuple[Finding, ...] = field(default=())


def examined(
    *, stalls: Stalls | None = None, disk: Disk | None = None, rate_bps: float | None = None, command: str | None = None
) -> Examined:
    """What was measured, as a result; with the settings of the host.

    Args:
        stalls: gaps in the clock.
        disk: speeds of the disk.
        rate_bps: what captures written to that disk would be of; None: the fastest interface's.
        command: for the manifest.
    """
    known = settings.read()
    wanted_bps = rate_bps or known.fastest_bps
    answers: dict[str, Any] = {"host": known.as_dict()}
    if stalls is not None:
        answers["stalls"] = stalls.as_dict()
    if disk is not None:
        answers["disk"] = disk.as_dict(wanted_bps)
    found = tuple(_findings(known, stalls, disk, wanted_bps))
    answers["findings"] = [finding.as_dict() for finding in found]
    return Examined(_tables(stalls, disk).dataset(_about(answers, command)), answers, found)


def _findings(known: Settings, stalls: Stalls | None, disk: Disk | None, rate_bps: float) -> Iterator[Finding]:
    yield from settings.findings(known)
    yield from stalls.findings() if stalls is not None else ()
    yield from disk.findings(rate_bps) if disk is not None else ()


def _tables(stalls: Stalls | None, disk: Disk | None) -> Spool:
    spool = Spool(names=NAMES)
    for table, part in (("clock_gaps", stalls), ("disk", disk)):
        if part is not None:
            spool.append(table, part.columns())
    return spool


def _about(answers: Mapping[str, Any], command: str | None) -> dict[str, Any]:
    """The manifest."""
    told = {"command": command} if command else {}
    return {"ackclock": _core.version, "runs": [{"run": 0}], **told, "host": dict(answers)}
