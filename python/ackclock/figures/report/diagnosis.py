"""The page of `ackclock doctor`: the cost of each cause, and every finding with its evidence and figures.

The diagnosis comes from above: here it is only what it gives (`_Diagnosis`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from ackclock.dataset import Dataset
from ackclock.figures import capture_figures, numbers
from ackclock.figures.capture_figures import Between
from ackclock.figures.report import drawing, render_page, write_page
from ackclock.figures.report.drawing import Figure
from ackclock.metrics.view import RunView, runs
from ackclock.system.files import readable

#: Points of a figure.
POINTS = 40_000

#: A picture of a stall shows so many times its length before and after it, and at least so much, in seconds.
AROUND, AT_LEAST_S = 1.0, 0.5


class _Cause(Protocol):
    @property
    def label(self) -> str:
        """Return the cause in words."""

    @property
    def cost_label(self) -> str:
        """Return the label of its share of the time."""


class _Finding(Protocol):
    """A finding: see `ackclock.capture.findings.Finding`."""

    @property
    def sentence(self) -> str: ...
    @property
    def evidence(self) -> Mapping[str, Any]: ...
    @property
    def next(self) -> str: ...
    @property
    def shown(self) -> tuple[str, ...]: ...


class _Diagnosis(Protocol):
    """A diagnosis: see `ackclock.capture.diagnosis.Diagnosis`."""

    @property
    def verdict(self) -> _Cause: ...
    @property
    def largest_costs(self) -> Sequence[tuple[Any, float]]: ...
    @property
    def findings(self) -> Sequence[_Finding]: ...


def write(data: Dataset, analysis: Mapping[str, Any], diagnosed: _Diagnosis, out: Path | str) -> Path:
    """Write the page atomically and return its path. Raises `InputError` if it cannot be written."""
    return write_page(render(data, analysis, diagnosed), out)


def render(data: Dataset, analysis: Mapping[str, Any], diagnosed: _Diagnosis) -> str:
    """Return the page as HTML."""
    views = list(runs(data))
    findings = list(_findings(views[0] if views else None, diagnosed.findings))
    verdict = diagnosed.verdict.label
    return render_page(
        "doctor.html.j2",
        title=verdict[:1].upper() + verdict[1:],
        summary=analysis["summary"],
        costs=[(cause.cost_label, share, numbers.value(share, "share")) for cause, share in diagnosed.largest_costs],
        findings=findings,
        files=[readable(str(file["path"])) for file in analysis["files"]],
        drawn="the flow with the most data, unless all flows are drawn",
        figures={
            f"finding{result['number']}-{figure.key}": figure.spec()
            for result in findings
            for figure in result["figures"]
        },
        version=data.manifest.get("ackclock"),
    )


def _findings(view: RunView | None, result: Sequence[_Finding]) -> Iterator[dict[str, Any]]:
    shown: set[tuple[str, Any]] = set()
    for number, finding in enumerate(result):
        figures = [] if view is None else _figures(view, finding, shown)
        yield {
            "number": number,
            "sentence": finding.sentence,
            "next": finding.next,
            "evidence": numbers.evidence_items(finding.evidence),
            "figures": figures,
        }


def _figures(view: RunView, finding: _Finding, shown: set[tuple[str, Any]]) -> list[Figure]:
    """Return the finding's figures, but for those shown above."""
    figures = []
    for kind in finding.shown:
        flow, between = _where(view, kind, finding.evidence.get("class"))
        if (kind, between) in shown:
            continue
        shown.add((kind, between))
        figures += drawing.possible(partial(capture_figures.KINDS[kind], view, flow, between), POINTS)
    return figures


def _where(view: RunView, kind: str, stall: str | None) -> tuple[int | None, Between]:
    """Return flow and time of the longest stall of a class; else the flow with the most data, at all times."""
    if kind != "sequence" or stall is None:
        return None, None
    stalls = view.data.scan("stalls").filter((pl.col("run") == view.run) & (pl.col("class") == stall))
    longest = stalls.sort("duration_s", "flow", descending=[True, False]).head(1).collect()
    if not longest.height:
        return None, None
    row = longest.row(0, named=True)
    around_s = max(AROUND * row["duration_s"], AT_LEAST_S)
    return row["flow"], (max(0.0, row["time_s"] - around_s), row["time_s"] + row["duration_s"] + around_s)
