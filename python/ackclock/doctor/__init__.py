"""This host: its clock's gaps, its disk's speed, settings that hold transfers back, and the network to another host.

Each part measures and gives a dataclass; its `findings` say in sentences what is worth a word. `examined` has all parts
as a dataset (`clock_gaps`, `disk`; `flows` and `flow_samples` of the network) and as answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ackclock import _core
from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import CLOCK_GAPS, DISK_OPERATIONS, DISK_TARGETS
from ackclock.doctor import settings
from ackclock.doctor.disk import Disk
from ackclock.doctor.finding import Finding
from ackclock.doctor.stalls import Stalls

if TYPE_CHECKING:
    from ackclock.doctor.network import Network

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
    *,
    stalls: Stalls | None = None,
    disk: Disk | None = None,
    network: Network | None = None,
    rate_bps: float | None = None,
    command: str | None = None,
) -> Examined:
    """What was measured, as a result; with the settings of the host.

    Args:
        stalls: gaps in the clock.
        disk: speeds of the disk.
        network: transfers between this host and another; its findings have the settings of both that matter to it.
        rate_bps: what captures written to that disk would be of; None: the fastest interface's.
        command: for the manifest.
    """
    known = settings.read()
    answers: dict[str, Any] = {"host": known.as_dict()}
    findings = [*settings.findings(known)] if network is None else [*network.findings()]
    spool = Spool(names=NAMES)
    if stalls is not None:
        spool.append("clock_gaps", stalls.columns())
        answers["stalls"] = stalls.as_dict()
        findings += stalls.findings()
    if disk is not None:
        spool.append("disk", disk.columns())
        wanted_bps = rate_bps or known.fastest_bps
        answers["disk"] = disk.as_dict(wanted_bps)
        findings += disk.findings(wanted_bps)
    runs = [{"run": 0}] if network is None else network.runs()
    if network is not None:
        answers["network"] = network.as_dict()
    about = {"ackclock": _core.version, "runs": runs, **({"command": command} if command else {})}
    found = [finding.as_dict() for finding in findings]
    data = spool.dataset({**about, "host": {**answers, "findings": found}})
    if network is not None:
        data = replace(data, parts={name: (*parts, *network.data.parts[name]) for name, parts in data.parts.items()})
    return Examined(data, {**answers, "findings": found}, tuple(findings))
