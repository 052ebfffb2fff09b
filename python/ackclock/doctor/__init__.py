"""Diagnose captures, and examine this host: its clock, disk, settings that limit transfers, and network to a peer.

Called, the package is `diagnose`: `ackclock.doctor("slow.pcap")`. Each part of a host's examination measures and gives
a dataclass; its `findings` say in sentences what is worth a word. `examined` has all parts as a dataset (`clock_gaps`,
`disk`; `flows` and `flow_samples` of the network) and as analysis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _core
from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import CLOCK_GAPS, DISK_OPERATIONS, DISK_TARGETS
from ackclock.doctor import settings
from ackclock.doctor.clock_gaps import Stalls
from ackclock.doctor.disk import Disk
from ackclock.doctor.settings import Finding
from ackclock.errors import InputError
from ackclock.input import arguments
from ackclock.input.arguments import checked, one_or_several, optional
from ackclock.system.callable_package import make_callable
from ackclock.system.files import readable

if TYPE_CHECKING:
    from ackclock.capture import Files
    from ackclock.capture.diagnosis import Diagnosis
    from ackclock.doctor.network import Network

__all__ = ["Examined", "Finding", "diagnose", "examined"]

#: Words behind integer codes.
NAMES = {"clock_gaps.class": CLOCK_GAPS, "disk.operation": DISK_OPERATIONS, "disk.target": DISK_TARGETS}


@dataclass(frozen=True, slots=True)
class Examined:
    """Examination of a host: tables, the JSON object, and findings."""

    data: Dataset
    analysis: Mapping[str, Any]
    findings: tuple[Finding, ...] = field(default=())


@checked(
    files=one_or_several(arguments.PATH, "paths of captures"),
    expression=arguments.TEXT,
    clock_log=optional(arguments.PATH),
)
def diagnose(files: Files, expression: str = "", *, clock_log: Path | str | None = None) -> Diagnosis:
    """Return what made transfers slow, from captures or the folder of a captured result, as `ackclock doctor` does.

    Args:
        files: the captures, or one; or a folder that `ackclock capture --out` wrote.
        expression: only these packets, in the language of pcap-filter(7).
        clock_log: a log of gaps in the clock of the host.

    Raises:
        InputError: nothing could be read, the expression is none, or the folder holds no analysis of captures.
    """
    from ackclock.capture import of_result, summarise
    from ackclock.capture.diagnosis import diagnose

    paths = [files] if isinstance(files, (str, Path)) else files
    if len(paths) != 1 or not Path(paths[0]).is_dir():
        return diagnose(summarise(paths, expression, clock_log=clock_log).analysis)
    if expression:
        raise InputError(f"expression: found {readable(paths[0])}, a result; expected captures")
    return diagnose(of_result(paths[0], clock_log).analysis)


def examined(
    *,
    stalls: Stalls | None = None,
    disk: Disk | None = None,
    network: Network | None = None,
    rate_bps: float | None = None,
    rtt_s: float | None = None,
    command: str | None = None,
) -> Examined:
    """Return the measurements as a result, with the settings of the host.

    Args:
        stalls: gaps in the clock.
        disk: speeds of the disk.
        network: transfers between this host and another; its findings replace those of this host's settings.
        rate_bps: the rate of a path, and of captures written to that disk; None: the fastest interface's.
        rtt_s: the RTT of that path, for which socket buffers are sized.
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
    of_host = [*settings.findings(host, rate_bps, rtt_s)] if network is None else [*network.findings()]
    findings_list = (*of_host, *_measured(stalls, disk, capture_bps))
    analysis["findings"] = [finding.as_dict() for finding in findings_list]
    runs = [{"run": 0}] if network is None else network.runs()
    data = _tables(stalls, disk).dataset(_about(analysis, runs, command))
    return Examined(data if network is None else _with(data, network), analysis, findings_list)


def _measured(stalls: Stalls | None, disk: Disk | None, rate_bps: float) -> Iterator[Finding]:
    """Yield the findings of the clock and of the disk."""
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


make_callable(__name__, __name__, "diagnose")
