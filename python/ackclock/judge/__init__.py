"""Judge a log of a QUIC implementation by the specification of its congestion controller.

The project's own controller is replayed beside the events of the log (`replay`): acknowledged bytes, losses, CE marks,
round-trip times. Where the window in the log leaves what the replay allows, that is a deviation, with the event's time,
both windows and the section that it deviates from (`walk`, `rules`). BBR is judged by the bounds of its model (`bbr`)
and by the probes that show (`probes`). What the log does not show is undecided, and no deviation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ackclock import qlog, repr_format
from ackclock.errors import InputError
from ackclock.input import arguments
from ackclock.input.arguments import checked
from ackclock.judge import bbr, rules
from ackclock.judge.rules import NAMES, Deviation
from ackclock.judge.walk import Walk
from ackclock.qlog import Connection, Metrics
from ackclock.system.files import readable

__all__ = ["NAMES", "Deviation", "Judgement", "judge", "judge_connection"]


@dataclass(frozen=True, slots=True, repr=False)
class Judgement:
    """The judgement of one connection: windows that agreed, that are undecided, and deviations."""

    title: str
    specification: str
    agreed: int
    undecided: int
    deviations: Sequence[Deviation]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Return "deviates", "agrees", or "undecided" if no window could be compared."""
        if self.deviations:
            return "deviates"
        return "agrees" if self.agreed else "undecided"

    @property
    def summary(self) -> str:
        """Return the judgement in a sentence."""
        windows = f"{self.agreed:,} windows agree, {self.undecided:,} are undecided"
        if not self.deviations:
            return f"{self.verdict.capitalize()}: {self.specification}; {windows}."
        times = repr_format.counted(len(self.deviations), "deviation")
        return f"Deviates from {self.specification}: {times}; {windows}."

    def as_json(self) -> dict[str, Any]:
        """Return the judgement as JSON: windows in bytes, pacing rates in bit/s, times in s, gains as ratios."""
        return {
            "title": self.title,
            "specification": self.specification,
            "verdict": self.verdict,
            "agreed": self.agreed,
            "undecided": self.undecided,
            "deviations": [asdict(one) for one in self.deviations],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return repr_format.lines("Judgement", self.summary, *self.notes)


@checked(path=arguments.PATH, specification=arguments.TEXT)
def judge(path: Path | str, specification: str) -> list[Judgement]:
    """Return the judgement of each connection in a qlog file.

    Args:
        path: the log, also gzip-compressed.
        specification: "reno" (RFC 9002), "cubic" (RFC 9438) or "bbr3" (draft-ietf-ccwg-bbr-06).

    Raises:
        InputError: another specification, or the file is no log, or has no congestion window or acknowledgement.
    """
    rules.reference(specification)
    log = qlog.read(path)
    found = [judge_connection(one, specification, log.notes) for one in qlog.connections(log) if _can_be_judged(one)]
    if not found:
        raise InputError(
            f"{readable(Path(path))}: found no connection with congestion windows and acknowledgements; expected "
            "metrics_updated, packet_sent, and packet_received with frames or packets_acked"
        )
    return found


def judge_connection(connection: Connection, specification: str, notes: Sequence[str] = ()) -> Judgement:
    """Return the judgement of a connection. Raises `InputError`."""
    reference = rules.reference(specification)
    walk = Walk(reference, connection)
    if specification == "bbr3":
        result = bbr.Bbr(reference, connection, walk.datagram_bytes).run()
        doubts = [bbr.UNDECIDED]
    else:
        result = walk.run().comparison
        doubts = list(_doubts(connection, walk))
    counts = (result.agreed, result.undecided)
    return Judgement(connection.title, reference.title, *counts, result.deviations, (*notes, *doubts))


def _can_be_judged(connection: Connection) -> bool:
    windows = any(isinstance(fact, Metrics) and fact.cwnd_bytes for fact in connection.facts)
    return windows and connection.acked_packets > 0


def _doubts(connection: Connection, walk: Walk) -> list[str]:
    """Return what the log lacks."""
    facts = [fact for fact in connection.facts if isinstance(fact, Metrics)]
    lacking: Mapping[str, bool] = {
        f"the datagram size: {walk.datagram_bytes:,.0f} bytes are assumed": connection.max_datagram_bytes is None,
        "round-trip times": not any(fact.srtt_s or fact.latest_rtt_s for fact in facts),
        "pacing rates": not any(fact.pacing_bps for fact in facts),
        "losses: a reduction without one may have had one": not connection.lost_packets,
    }
    doubts = [f"the log does not say {what}" for what, is_missing in lacking.items() if is_missing]
    if walk.doubtful:
        losses = repr_format.counted(walk.doubtful, "lost packet")
        doubts.append(f"{losses} of probe timeouts or the handshake: whether the window is to be reduced is undecided")
    return doubts


def group(deviations: Sequence[Deviation]) -> Mapping[str, Sequence[Deviation]]:
    """Return the deviations by their rule, in the order of the first of each."""
    groups: dict[str, list[Deviation]] = {}
    for one in deviations:
        groups.setdefault(one.rule, []).append(one)
    return groups
