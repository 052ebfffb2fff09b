"""The dossier as one HTML page: scorecard, figures, findings by section, and the questions left to the authors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ackclock import _core
from ackclock.errors import InputError
from ackclock.evaluate import SECTIONS, dossier
from ackclock.evaluate.cases import Case
from ackclock.evaluate.dossier import Score
from ackclock.evaluate.run import Evaluation, Rows, case_folder, stage_folder
from ackclock.evaluate.verdicts import WORSE, Change, harm
from ackclock.experiments.sweep import result
from ackclock.figures.figure_spec import (
    COLOURS,
    Axis,
    Band,
    Drawing,
    Heat,
    Layer,
    Line,
    Panel,
    Points,
    named,
    over_time,
)
from ackclock.figures.report import render_page
from ackclock.figures.report.drawing import Figure, figure
from ackclock.metrics import METRICS
from ackclock.scenario.points import label

#: Points of a layer of a figure.
POINTS = 20_000

#: Points of an ellipse, and the number of standard deviations to its rim.
RIM, DEVIATIONS = 60, 1.0

#: Time over which goodput is averaged in settling curves, in seconds.
SMOOTHED_S = 0.5


def render(evaluation: Evaluation, changes: Sequence[Change] | None = None) -> str:
    """Return the dossier as HTML."""
    request = evaluation.request
    drawn = list(_figures(evaluation))
    return render_page(
        "evaluate.html.j2",
        title=f"{request.name} by RFC 9743",
        summary=dossier.summary(evaluation),
        method=dossier.method(request),
        verdicts=dossier.VERDICTS,
        several=len(request.engines) > 1,
        scores=[_score(score) for score in dossier.scorecard(evaluation)],
        agreement=dossier.agreement(evaluation),
        agreement_heads=dossier.AGREEMENT,
        changes=None if changes is None else [_change(change) for change in changes],
        drawn=drawn,
        cases=[
            _case(evaluation, case)
            for case in evaluation.cases
            if any(f.case == case.name for f in evaluation.findings)
        ],
        not_covered=dossier.not_covered(evaluation),
        questions=[(section, title, lines) for section, (title, lines) in dossier.deployment(request).items()],
        command=request.command,
        figures={f"evaluate-{each.key}": each.spec() for each in drawn},
        version=_core.version,
    )


def _score(score: Score) -> dict[str, Any]:
    worst = score.worst
    return {
        "section": score.section,
        "title": SECTIONS[score.section],
        "engine": score.engine,
        "cells": dossier.cells(score),
        "worst": "" if worst is None else f"{worst.case} {dossier.point_text(worst)}".strip(),
        "link": "" if worst is None else worst.case,
    }


def _change(change: Change) -> list[str]:
    after = change.after
    verdicts = [change.before.sentence, after.sentence]
    return [after.case, dossier.point_text(after), METRICS[after.metric].label, *verdicts, dossier.change_text(change)]


def _case(evaluation: Evaluation, case: Case) -> dict[str, Any]:
    own = [finding for finding in evaluation.findings if finding.case == case.name]
    engines = dict.fromkeys(finding.engine for finding in own)
    return {
        "name": case.name,
        "section": case.judged.section,
        "title": case.title,
        "why": case.judged.why,
        "folders": [case_folder(Path(), engine, case).as_posix() for engine in engines],
        "several": len(engines) > 1,
        "rows": [
            {
                "engine": f.engine,
                "point": dossier.point_text(f),
                "values": dossier.sentence(f, evaluation.request),
                "excess": dossier.excess_text(f),
                "n": f.smallest.n if f.smallest else 0,
                "verdict": f.sentence,
                "bad": f.verdict == WORSE,
            }
            for f in own
        ],
    }


# --- figures


def _figures(evaluation: Evaluation) -> Iterator[Figure]:
    for engine in evaluation.request.engines:
        for case in evaluation.cases:
            if (engine, case.name) in evaluation.unsupported:
                continue
            names = [label(each) for each in evaluation.request.algorithms]
            for draw in DRAWN.get(case.judged.figure or "", ()):
                try:
                    drawing = draw(evaluation, engine, case, names, evaluation.rows[engine, case.name])
                except InputError:  # no values, or no samples
                    continue
                yield figure(drawing, POINTS)


def _key(engine: str, case: Case) -> str:
    return f"{engine}-{case.name}".replace(".", "-")


def _grid(case: Case) -> tuple[list[str], list[str]]:
    """Return the values of the first and of the second axis. Raises `InputError` for another number of axes."""
    if len(case.axes) != 2:
        raise InputError(f"{case.name}: found {len(case.axes)} swept keys; expected two")
    first, second = case.axes
    return [*dict.fromkeys(p[first] for p in case.points)], [*dict.fromkeys(p[second] for p in case.points)]


def _of_all(rows: Rows, variant: int, point: int, metric: str) -> dict[int, float]:
    values = rows.get((variant, point, metric), {})
    return {seed: value for seed, value in values.items() if value is not None}


def harm_map(evaluation: Evaluation, engine: str, case: Case, names: Sequence[str], rows: Rows) -> Drawing:
    """Return the harm of each variant (rows, for each value of the second axis) to each victim (columns)."""
    metric = case.harm[0]

    def harm_to_victim(variant: int, point: int) -> list[float]:
        alone, mixed = _of_all(rows, -1, point, metric), _of_all(rows, variant, point, metric)
        return [100 * harm(alone[seed], mixed[seed], metric) for seed in alone.keys() & mixed.keys()]

    caption = (
        f"{METRICS[metric].label}: the share of what a victim (column) has by itself that the algorithm of each row "
        f"takes, by {case.axes[1]}: harm in per cent, the mean over the seeds."
    )
    panel = _pairs(case, "victim", names, harm_to_victim)
    return Drawing(_key(engine, case), f"Harm to each victim, {engine}", caption, [panel])


def own_share_map(evaluation: Evaluation, engine: str, case: Case, names: Sequence[str], rows: Rows) -> Drawing:
    """Return what the candidate gets next to each competitor (columns). Raises `InputError` without goodput."""
    own, other = next(iter(case.judged.performance), ""), case.harm[0]
    if not own or {METRICS[own].unit, METRICS[other].unit} != {"bit/s"}:
        raise InputError(f"{case.name}: found no goodput of both groups")
    caption = (
        f"{names[0]} as the victim: its share of the goodput next to the algorithm of each column, by {case.axes[1]}, "
        "in per cent; 50 % is an even share. Means over the seeds."
    )
    panel = _pairs(case, "competitor", names[:1], lambda variant, point: _shares(rows, variant, point, own, other))
    return Drawing(f"{_key(engine, case)}-own", f"What each competitor leaves, {engine}", caption, [panel])


def _pairs(case: Case, title: str, names: Sequence[str], values_of: Callable[[int, int], list[float]]) -> Panel:
    """Return the means of values by variant and point: the first axis in columns, variants by the second in rows."""
    columns, others = _grid(case)
    values = np.full((len(others) * len(names), len(columns)), np.nan)
    for row, column in np.ndindex(values.shape):
        block, variant = divmod(row, len(names))
        some = values_of(variant, column * len(others) + block)
        values[row, column] = np.mean(some) if some else np.nan
    labels = [f"{name}, {other}" for other in others for name in names]
    return Panel(named("", labels), [Heat(values, "%")], x=named(title, columns))


def _shares(rows: Rows, variant: int, point: int, own: str, victim: str) -> list[float]:
    """Return the tested flows' share of the goodput of both groups in each seed, in per cent."""
    mine, theirs = _of_all(rows, variant, point, own), _of_all(rows, variant, point, victim)
    return [100 * mine[s] / (mine[s] + theirs[s]) for s in mine.keys() & theirs.keys() if mine[s] + theirs[s] > 0]


def share_map(evaluation: Evaluation, engine: str, case: Case, names: Sequence[str], rows: Rows) -> Drawing:
    """Return the candidate's share of the goodput over the two axes."""
    first, second = _grid(case)
    victim, own = case.harm[0], case.judged.performance[0]
    values = np.full((len(first), len(second)), np.nan)
    for point in range(len(case.points)):
        some = _shares(rows, 0, point, own, victim)
        values[divmod(point, len(second))] = np.mean(some) if some else np.nan
    caption = (
        f"{evaluation.request.name}: its share of the goodput against one flow of {case.judged.victim}, in per cent; "
        "50 % is an even share. Means over the seeds."
    )
    panel = Panel(named(case.axes[0], first), [Heat(values, "%")], x=named(case.axes[1], second))
    return Drawing(_key(engine, case), f"Share of the goodput over buffer and RTT, {engine}", caption, [panel])


def trade_off(evaluation: Evaluation, engine: str, case: Case, names: Sequence[str], rows: Rows) -> Drawing:
    """Return goodput over round-trip time with ellipses of the seeds, a panel for each value of the first axis."""
    first, second = _grid(case)
    delay, goodput = case.harm[0], case.judged.performance[0]
    panels = []
    for row, value in enumerate(first):
        layers: list[Layer] = []
        for variant, name in enumerate(names):
            colour = COLOURS[variant]
            means = []
            for column in range(len(second)):
                point = row * len(second) + column
                x, y = _of_all(rows, variant, point, delay), _of_all(rows, variant, point, goodput)
                cloud = np.array([[1e3 * x[seed], 100 * y[seed]] for seed in sorted(x.keys() & y.keys())])
                if cloud.size:
                    means.append(cloud.mean(axis=0))
                    layers.append(_ellipse(cloud, colour))
            if means:
                at = np.array(means)
                layers.append(Points(name, at[:, 0], at[:, 1], colour, size=3.0, dash="dot"))
        x_axis = Axis("Mean round-trip time (ms)", "ms", logarithmic=True)
        title = f"{case.axes[0]} {value}"
        panels.append(Panel(Axis(f"{METRICS[goodput].label} (%), {title}", "%"), layers, x=x_axis, title=title))
    caption = (
        f"Each mark is a buffer, from {second[0]} to {second[-1]}; marks of an algorithm are joined in their order. "
        "The ellipse is one standard deviation over the seeds. Up and to the left is better."
    )
    return Drawing(_key(engine, case), f"Goodput and latency, {engine}", caption, panels, columns=len(panels))


def _ellipse(cloud: np.ndarray[Any, Any], colour: str) -> Line:
    """Return the rim of one standard deviation around the mean of points in a plane."""
    angle = np.linspace(0, 2 * np.pi, RIM)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    spread = np.zeros((2, 2))
    if len(cloud) > 1:
        sizes, directions = np.linalg.eigh(np.cov(cloud.T))
        spread = directions * np.sqrt(np.maximum(sizes, 0.0))
    rim = cloud.mean(axis=0)[:, None] + DEVIATIONS * spread @ circle
    return Line("", rim[0], rim[1], colour, width=0.8, listed=False)


def convergence(evaluation: Evaluation, engine: str, case: Case, names: Sequence[str], rows: Rows) -> Drawing:
    """Return the goodput of each flow over time: the mean over the seeds and their range, a panel for each variant."""
    request = evaluation.request
    seeds = range(request.first_seed, request.first_seed + request.sizes[0])
    sweep = result.read(case_folder(evaluation.folder, engine, case) / stage_folder("seeds", seeds))
    samples = sweep.scan("flow_samples").select("point", "run", "flow", "time_s", "delivered_bytes").collect()
    panels = []
    for variant, name in enumerate(names):
        layers: list[Layer] = []
        own = samples.filter(pl.col("point") == variant)
        for flow in own["flow"].unique().sort().to_list():
            x, low, mean, high = _goodput(own.filter(pl.col("flow") == flow))
            colour = COLOURS[flow % len(COLOURS)]
            layers.append(Band(f"flow {flow}: range over the seeds", x, low, high, colour))
            layers.append(Line(f"flow {flow}", x, mean, colour))
        panels.append(Panel(Axis(f"{name} (Mb/s)", "Mb/s", from_zero=True), layers, title=name))
    duration_s = float(samples["time_s"].max() or 0.0)  # type: ignore[arg-type]
    caption = "Goodput of each flow: the mean over the seeds, and the range from the least to the greatest."
    drawn = f"How flows settle, {engine}"
    return Drawing(_key(engine, case), drawn, caption, panels, x=over_time(0.0, duration_s))


def _goodput(samples: pl.DataFrame) -> tuple[np.ndarray[Any, Any], ...]:
    """Return times, and the least, mean and greatest goodput over the runs, in Mb/s."""
    bins = (
        samples.with_columns((pl.col("time_s") / SMOOTHED_S).floor().alias("bin"))
        .group_by("run", "bin")
        .agg(pl.col("delivered_bytes").max())
        .sort("run", "bin")
        .with_columns((pl.col("delivered_bytes").diff().over("run") * 8e-6 / SMOOTHED_S).alias("mbps"))
        .drop_nulls()
        .filter(pl.col("bin") < pl.col("bin").max())  # the last one is not complete
        .group_by("bin")
        .agg(low=pl.col("mbps").min(), mean=pl.col("mbps").mean(), high=pl.col("mbps").max())
        .sort("bin")
    )
    columns = [bins[name].to_numpy() for name in ("low", "mean", "high")]
    return (bins["bin"].to_numpy() + 0.5) * SMOOTHED_S, *columns


#: Figures by the words of `[evaluate] figure`.
DRAWN = {
    "harm": (harm_map, own_share_map),
    "share": (share_map,),
    "trade-off": (trade_off,),
    "convergence": (convergence,),
}
