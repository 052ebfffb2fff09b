"""The report: one self-contained HTML file that answers first and shows its evidence after.

    from ackclock.views import report
    report.write(["results/dumbbell-packet"], "report.html")

It opens offline: style, script, plotly.js and data are inside, and its content security policy forbids
it to load anything. Several results are compared side by side.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.metrics import RunView, Summary, throughput
from ackclock.metrics.metric import Value
from ackclock.system.files import readable
from ackclock.views.report import answer, figures, page, rows, together
from ackclock.views.report.answer import Subject

#: Points of all curves of a report; about 11 bytes each.
POINTS = 220_000

#: Lists in the printed manifest are cut after this many items.
MOST_ITEMS = 12


@dataclass(frozen=True, slots=True)
class Result:
    """A dataset with what the report says of it."""

    name: str
    data: Dataset
    views: tuple[RunView, ...]
    values: tuple[Mapping[str, Value], ...]
    summaries: Mapping[str, Summary]
    rates: pl.DataFrame

    @property
    def subject(self) -> Subject:
        """What the answer's sentences need."""
        known = [float(rate) for rate in self.rates["goodput_bps"]]
        return answer.subject_of(self.name, self.views[0], self.summaries, known, len(self.views))


def write(results: Sequence[Path | str], out: Path | str) -> Path:
    """Writes the report of one or more result folders to `out`, whole or not at all, and returns its path.

    Raises `InputError` for a folder that is no result and for a place that cannot be written.
    """
    names = [readable(Path(os.path.realpath(folder)).name) for folder in results]
    return page.write(render([Dataset.read(folder) for folder in results], names), out)


def render(datasets: Sequence[Dataset], names: Sequence[str] | None = None) -> str:
    """The report as HTML. `names` tell the datasets apart where their scenarios' names do not."""
    if not datasets:
        raise InputError("nothing to report on: give one result folder or more")
    titles = _titles(datasets, names or [f"result {number + 1}" for number in range(len(datasets))])
    results = [_result(name, data) for name, data in zip(titles, datasets, strict=True)]
    return page.render("report.html.j2", **_content(results))


def _result(name: str, data: Dataset) -> Result:
    views = tuple(metrics.runs(data))
    if not views:
        raise InputError("the result holds no runs to report on")
    values = tuple(metrics.of_run(view) for view in views)
    return Result(name, data, views, values, metrics.summary(list(values)), _rates(views))


def _rates(views: Sequence[RunView]) -> pl.DataFrame:
    """Each flow's goodput while it was there, and its share of all the data, averaged over its runs."""
    parts = [found for view in views if (found := _rates_of(view)) is not None]
    schema = {"flow": pl.UInt32, "goodput_bps": pl.Float64, "share": pl.Float64}
    found = pl.concat(parts) if parts else pl.DataFrame(schema=schema)
    return found.group_by("flow").agg(pl.col("goodput_bps", "share").mean()).sort("flow")


def _datagram_rates(views: Sequence[RunView]) -> pl.DataFrame:
    """As `_rates` of the UDP flows, whose bytes are no part of the shares."""
    parts = [
        pl.DataFrame({"flow": view.datagrams["flow"], "goodput_bps": throughput.datagram_rates_bps(view)})
        for view in views
    ]
    found = pl.concat(parts).group_by("flow").agg(pl.col("goodput_bps").mean()).sort("flow")
    return found.with_columns(pl.lit(None, dtype=pl.Float64).alias("share"))


def _rates_of(view: RunView) -> pl.DataFrame | None:
    rates, data = view.once(throughput.rates_while_there_bps), view.once(throughput.flow_rates_bps)
    if rates is None or data is None:
        return None
    flows = view.flows["flow"].filter(pl.Series(throughput.present(view)))
    return pl.DataFrame({"flow": flows, "goodput_bps": rates, "share": data / (data.sum() or 1.0)})


def _content(results: Sequence[Result]) -> dict[str, Any]:
    points = POINTS // (6 * len(results))
    sections = [_section(number, result, points) for number, result in enumerate(results)]
    shared = (
        together.figures([r.name for r in results], [r.views[0] for r in results], points) if len(results) > 1 else []
    )
    every = [("together", figure) for figure in shared] + [(s["key"], f) for s in sections for f in s["figures"]]
    summaries, values = [r.summaries for r in results], [r.values for r in results]
    return {
        "title": _title(results),
        "compared": answer.comparison([result.subject for result in results]) if len(results) > 1 else [],
        "sections": sections,
        "shared": shared,
        "metric_rows": rows.metric_rows(summaries, values),
        "missing": rows.missing(summaries),
        "names": [result.name for result in results],
        "runs_note": _runs_note([len(result.views) for result in results]),
        "figures": {f"{key}-{figure.key}": figure.spec() for key, figure in every},
        "version": results[0].data.manifest.get("ackclock"),
    }


def _section(number: int, result: Result, points: int) -> dict[str, Any]:
    manifest = result.data.manifest
    return {
        "key": f"result{number}",
        "name": result.name,
        "sentences": answer.sentences(result.subject),
        "cards": _cards(result.summaries),
        "figures": figures.of_run(result.views[0], result.views, points),
        "drawn": _drawn(result.views),
        "flows": rows.flow_table(result.views, pl.concat([result.rates, _datagram_rates(result.views)])),
        "runs": len(result.views),
        "scenario": manifest.get("scenario") or "",
        "file": manifest.get("scenario_path") or "scenario.toml",
        "command": manifest.get("command") or "",
        "engine": manifest.get("engine") or "",
        "manifest": _readable({key: value for key, value in manifest.items() if key != "scenario"}),
    }


def _cards(summaries: Mapping[str, Summary]) -> list[dict[str, str]]:
    known = [(metrics.METRICS[name], summaries[name]) for name in metrics.main("card") if summaries[name].n]
    return [_card(metric, summary) for metric, summary in known]


def _card(metric: metrics.Metric, summary: Summary) -> dict[str, str]:
    from ackclock.views import numbers

    mean, interval = numbers.interval(summary.mean, summary.ci95_low, summary.ci95_high, metric.unit)
    return {"label": metric.label, "value": mean, "interval": interval if summary.n > 1 else ""}


def _drawn(views: Sequence[RunView]) -> str:
    which = "the run" if views[0].seed is None else f"the run with {views[0].name}"
    return which if len(views) == 1 else f"{which}, the first of {len(views)}; the distributions show all runs"


def _runs_note(counts: Sequence[int]) -> str:
    if max(counts) == 1:
        return "One run: no intervals. Run with more repeats to see how much runs differ."
    said = (
        f"{counts[0]} runs"
        if len(set(counts)) == 1
        else " and ".join(f"{n} runs" if n > 1 else "1 run (no interval)" for n in counts)
    )
    return f"Means over {said} with different seeds, and Student’s 95 % confidence intervals of these means."


def _title(results: Sequence[Result]) -> str:
    if len(results) == 1:
        return results[0].name
    return f"{answer.counted(len(results), 'result').capitalize()} compared"


def _titles(datasets: Sequence[Dataset], names: Iterable[str]) -> list[str]:
    """The scenarios' names; with engine or folder where they alone would be the same."""
    plans = [data.plan.name or name for data, name in zip(datasets, names, strict=False)]
    engines = [f"{plan} · {data.manifest.get('engine')}" for plan, data in zip(plans, datasets, strict=True)]
    folders = [f"{plan} · {name}" for plan, name in zip(plans, names, strict=False)]
    for titles in (plans, engines, folders):
        if len(set(titles)) == len(titles):
            return titles
    return [f"{title} ({number})" for number, title in enumerate(folders, start=1)]


def _readable(value: Any) -> str:
    return json.dumps(_cut(value), indent=2, ensure_ascii=False)


def _cut(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _cut(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        kept = [_cut(item) for item in value[:MOST_ITEMS]]
        left = len(value) - len(kept)
        return [*kept, f"… {left:,} more in manifest.json"] if left else kept
    return value
