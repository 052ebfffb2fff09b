"""Examine this host: gaps in its clock, disk speed, settings that limit transfers, and the network to a peer.

Each part measures and gives a dataclass; its `findings` say in sentences what is worth a word. `examined` has all parts
as a dataset (`clock_gaps`, `disk`; `flows` and `flow_samples` of the network) and as analysis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ackclock import _core
from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import CLOCK_GAPS, DISK_OPERATIONS, DISK_TARGETS
from ackclock.doctor import settings
from ackclock.doctor.clock_gaps import Stalls
from ackclock.doctor.disk import Disk
from ackclock.doctor.settings import Finding, Settings

if TYPE_CHECKING:
    from ackclock.doctor.network import Network

__all__ = ["Examined", "Finding", "examined"]

#: Words behind integer codes.
NAMES = {"clock_gaps.class": CLOCK_GAPS, "disk.operation": DISK_OPERATIONS, "disk.target": DISK_TARGETS}


@dataclass(frozen=True, slots=True)
class Examined:
    """Examination of a host: tables, the JSON object, and findings."""

    data: Dataset
    analysis: Mapping[str, Any]
    findings: tuple[Finding, ...] = field(default=())


def examined(
    *,
    stalls: Stalls | None = None,
    disk: Disk | None = None,
    network: Network | None = None,
    rate_bps: float | None = None,
    command: str | None = None,
) -> Examined:
    """Return the measurements as a result, with the settings of the host.

    Args:
        stalls: gaps in the clock.
        disk: speeds of the disk.
        network: transfers between this host and another; its findings have the settings of both that matter to it.
        rate_bps: what captures written to that disk would be of; None: the fastest interface's.
        command: for the manifest.
    """
    host = settings.read()
    capture_bps = rate_bps or host.fastest_bps
    analysis: dict[str, Any] = {"host": host.as_dict()}
    if stalls is not None:
        analysis["stalls"] = stalls.as_dict()
    if disk is not None:
        analysis["disk"] = disk.as_dict(capture_bps)
    if network is not None:
        analysis["network"] = network.as_dict()
    findings_list = tuple(_findings(host, stalls, disk, network, capture_bps))
    analysis["findings"] = [finding.as_dict() for finding in findings_list]
    runs = [{"run": 0}] if network is None else network.runs()
    data = _tables(stalls, disk).dataset(_about(analysis, runs, command))
    return Examined(data if network is None else _with(data, network), analysis, findings_list)


def _findings(
    host: Settings, stalls: Stalls | None, disk: Disk | None, network: Network | None, rate_bps: float
) -> Iterator[Finding]:
    """Yield all findings; of the settings only those that matter to the network if one was measured."""
    yield from settings.findings(host) if network is None else network.findings()
    yield from stalls.findings() if stalls is not None else ()
    yield from disk.findings(rate_bps) if disk is not None else ()


def _tables(stalls: Stalls | None, disk: Disk | None) -> Spool:
    spool = Spool(names=NAMES)
    for table, part in (("clock_gaps", stalls), ("disk", disk)):
        if part is not None:
            spool.append(table, part.columns())
    return spool


def _with(data: Dataset, network: Network) -> Dataset:
    return replace(data, parts={name: (*parts, *network.data.parts[name]) for name, parts in data.parts.items()})


def _about(analysis: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], command: str | None) -> dict[str, Any]:
    command_entry = {"command": command} if command else {}
    return {"ackclock": _core.version, "runs": list(runs), **command_entry, "host": dict(analysis)}
