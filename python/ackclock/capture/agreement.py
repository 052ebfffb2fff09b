"""Diagnoses of the same connections at several vantage points: whether they agree, or why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.capture.analysis import partial_sum
from ackclock.capture.diagnosis import Diagnosis
from ackclock.capture.findings import WORTH, WORTH_OF_CAPTURE, Cause
from ackclock.figures import numbers
from ackclock.system.files import readable

#: Verdicts that leave the cause open.
OPEN = (Cause.UNDECIDED, Cause.CAPTURE)


@dataclass(frozen=True, slots=True)
class Point:
    """A vantage point: its files, their analysis, and the diagnosis of that."""

    files: Sequence[Path]
    analysis: Mapping[str, Any]
    diagnosis: Diagnosis

    @property
    def name(self) -> str:
        """Return its first file, and how many follow."""
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return readable(self.files[0]) + more


@dataclass(frozen=True, slots=True)
class Agreement:
    """The verdict on several vantage points of the same connections, whether they agree, and a sentence why or not."""

    verdict: Cause
    agree: bool
    sentence: str


def compare(points: Sequence[Point]) -> Agreement:
    """Compare diagnoses of the same connections, each made alone.

    A vantage point that leaves the cause open leaves it to the others. If these differ it is undecided.
    """
    verdicts = {point.diagnosis.verdict for point in points}
    decided = [point for point in points if point.diagnosis.verdict not in OPEN]
    causes = {point.diagnosis.verdict for point in decided}
    if len(verdicts) == 1:
        verdict = points[0].diagnosis.verdict
        return Agreement(verdict, agree=True, sentence=f"The vantage points agree: {verdict.label}.")
    if len(causes) == 1:
        verdict = decided[0].diagnosis.verdict
        names = " and ".join(point.name for point in decided)
        open_ = "; ".join(_reason(point) for point in points if point not in decided)
        return Agreement(verdict, agree=False, sentence=f"{verdict.label.capitalize()}, by {names} alone: {open_}")
    each = "; ".join(f"{point.name}: {point.diagnosis.verdict.label}" for point in points)
    why = (
        " ".join(_differences(points))
        or "Each sees another part of the path: `ackclock capture --join` matches their packets."
    )
    return Agreement(Cause.UNDECIDED, agree=False, sentence=f"The vantage points do not agree ({each}). {why}")


def _reason(point: Point) -> str:
    """Return why a vantage point leaves the cause open: its first finding."""
    findings = point.diagnosis.findings
    return f"{point.name} is {point.diagnosis.verdict.label}. {findings[0].sentence if findings else ''}".strip()


def _differences(points: Sequence[Point]) -> Iterator[str]:
    """Yield what the captures differ in that may explain different verdicts."""
    data = {point.name: sum(flow["bytes"] or 0 for flow in point.analysis["flows"]) for point in points}
    if min(data.values()) < (1 - WORTH) * max(data.values()):
        sizes = ", ".join(f"{name} has {numbers.value(size, 'bytes')}" for name, size in data.items())
        yield f"They do not have the same data: {sizes}."
    for point in points:
        share = point.analysis["capture_loss"]["share"] or 0.0
        if share >= WORTH_OF_CAPTURE:
            yield f"{point.name} lacks {numbers.value(share, 'share')} of the data segments."
    counts = {point.name: partial_sum(flow["segments_lost"] for flow in point.analysis["flows"]) for point in points}
    lost = {name: count for name, count in counts.items() if count is not None}
    if len(set(lost.values())) > 1:
        yield "Segments lost: " + ", ".join(f"{count:,} by {name}" for name, count in lost.items()) + "."
