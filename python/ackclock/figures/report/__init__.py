"""The report: one self-contained HTML file, with the conclusions first and the evidence after.

    from ackclock.figures import report
    report.write(["results/dumbbell-packet"], "report.html")

It opens offline: style, script, plotly.js and data are inside, and its content security policy forbids it to load
anything. Several results are compared side by side. `write_sweeps` writes the report of a sweep, or of several with the
same keys: charts of the main metrics, and the table of points.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from ackclock import metrics
from ackclock.dataset import Dataset, folders
from ackclock.errors import InputError
from ackclock.figures import (
    capture_figures,
    experiment_figures,
    numbers,
    result_figures,
    run_figures,
    summary_text,
    sweep_axes,
)
from ackclock.figures.figure_spec import Drawing, Heat, Panel
from ackclock.figures.report import tables
from ackclock.figures.report.drawing import Figure, figure, possible
from ackclock.figures.report.tables import Runs, gathered
from ackclock.figures.summary_text import Subject
from ackclock.figures.sweep_axes import Swept
from ackclock.input import arguments
from ackclock.input.arguments import checked, several
from ackclock.metrics import RunView, Summary, epoch
from ackclock.metrics.completion import response_means
from ackclock.metrics.protocols import PHASE, Recorded
from ackclock.system.files import readable

#: Points of all curves of a report; about 11 bytes each.
POINTS = 220_000

TEMPLATE = "report.html.j2"

#: Kinds of figures that only captures have, in the order of the page.
OF_CAPTURES = ("limits", "stalls", "level", "sequence", "pipe", "rtt")

#: Finished transfers that make the figure of response times worth showing.
MIN_TRANSFERS = 20

#: Up to this number of groups they are the columns of a table, beyond it the rows.
MAX_COLUMNS = 5

#: Lists in the printed manifest are cut after this many items.
MAX_ITEMS = 12


@dataclass(frozen=True, slots=True)
class Result:
    """A result with the report's content, and the figures of its first run."""

    name: str
    first: RunView
    runs: Runs
    summaries: Mapping[str, Summary]
    figures: list[Figure]

    @property
    def subject(self) -> Subject:
        """Return the facts for the sentences."""
        return summary_text.subject_of(
            self.name, self.first, self.summaries, self.runs.flow_counts, self.runs.range_bps
        )


@checked(results=several(arguments.PATH, "a list of result folders"), out=arguments.PATH)
def write(results: Sequence[Path | str], out: Path | str) -> Path:
    """Write the report of one or more result folders to `out`, atomically, and return its path.

    Raises `InputError` for a folder that is no result and for a place that cannot be written.
    """
    return write_with_comparison(results, out)[0]


def write_with_comparison(results: Sequence[Path | str], out: Path | str) -> tuple[Path, list[str]]:
    """Write the report; return its path and, of several results, the sentences that compare them."""
    names = [readable(Path(os.path.realpath(folder)).name) for folder in results]
    content = _of_datasets([Dataset.read(folder) for folder in results], names)
    return write_page(render_page(TEMPLATE, **content), out), content["compared"]


def render(datasets: Sequence[Dataset], names: Sequence[str] | None = None) -> str:
    """Return the report as HTML. `names` distinguish datasets whose scenarios' names do not."""
    return render_page(TEMPLATE, **_of_datasets(datasets, names))


def _of_datasets(datasets: Sequence[Dataset], names: Sequence[str] | None) -> dict[str, Any]:
    if not datasets:
        raise InputError("nothing to report on: give one result folder or more")
    titles = _titles(datasets, names or [f"result {number + 1}" for number in range(len(datasets))])
    points = POINTS // (6 * len(datasets))
    results = []
    for name, data in zip(titles, datasets, strict=True):
        first, runs = gathered(data)
        results.append(Result(name, first, runs, runs.summaries, _figures(first, runs, points)))
    return _content(results, points)


def _figures(view: RunView, runs: Runs, points: int) -> list[Figure]:
    """Return all figures of one result: `view` is the run drawn, `runs` are all; about `points` a figure."""
    of_run = (run_figures.cwnd, run_figures.cwnd_total, run_figures.goodput, run_figures.queue, run_figures.delay)
    makers: list[Callable[[], Drawing]] = [
        *(partial(make, view) for make in of_run),
        partial(result_figures.cdf, {"": runs.distributions}),
        partial(_epochs, view),
        partial(_response, runs.data),
    ]
    if "capture" in view.data.manifest:
        kinds = {**capture_figures.KINDS, "stalls": _stalls}
        makers += [partial(kinds[kind], view) for kind in OF_CAPTURES]
    return [figure for make in makers for figure in possible(make, points)]


def _epochs(view: RunView) -> Drawing:
    if not view.cached(epoch.epochs).height:
        raise InputError("no packet was dropped at the bottleneck")
    return run_figures.epochs(view)


def _stalls(view: RunView) -> Drawing:
    if view.data.scan("stalls").filter(pl.col("run") == view.run).select(pl.len()).collect().item() == 0:
        raise InputError("no flow stalled")
    return capture_figures.stalls(view)


def _response(data: Recorded) -> Drawing:
    means = response_means(data)
    if means["n"].sum() < MIN_TRANSFERS:
        raise InputError("too few finished transfers for a figure")
    return result_figures.response(means)


def _content(results: Sequence[Result], points: int) -> dict[str, Any]:
    sections = [_section(number, result) for number, result in enumerate(results)]
    shared = _shared(results, points) if len(results) > 1 else []
    every = [("together", figure) for figure in shared] + [(s["key"], f) for s in sections for f in s["figures"]]
    metric_rows = tables.metric_rows([r.summaries for r in results], [r.runs.values for r in results])
    return {
        "title": results[0].name
        if len(results) == 1
        else f"{summary_text.counted(len(results), 'result').capitalize()} compared",
        "compared": summary_text.comparison_sentences([result.subject for result in results])
        if len(results) > 1
        else [],
        "sections": sections,
        "shared": shared,
        "metric_rows": metric_rows,
        "names": [result.name for result in results],
        "runs_note": _runs_note(
            [len(result.runs.names) for result in results],
            is_capture=not any(result.subject.bottlenecks for result in results),
        ),
        "figures": {f"{key}-{figure.key}": figure.spec() for key, figure in every},
        "version": results[0].runs.data.manifest.get("ackclock"),
    }


def _shared(results: Sequence[Result], points: int) -> list[Figure]:
    names, views = [result.name for result in results], [result.first for result in results]
    distributions = {result.name: result.runs.distributions for result in results}
    makers: list[Callable[[], Drawing]] = [
        partial(run_figures.goodputs, names, views),
        partial(run_figures.backlogs, names, views),
        partial(result_figures.cdf, distributions),
    ]
    return [figure for make in makers for figure in possible(make, points // len(results))]


def _section(number: int, result: Result) -> dict[str, Any]:
    manifest, summaries = result.runs.data.manifest, result.summaries
    return {
        "key": f"result{number}",
        "name": result.name,
        "sentences": [
            *([manifest["capture"]["summary"]] if "capture" in manifest else []),
            *summary_text.result_sentences(result.subject),
            *([summary_text.phase_sentence(manifest[PHASE])] if PHASE in manifest else []),
        ],
        "warnings": [
            sentence
            for find in (summary_text.ended_flows, summary_text.starvation)
            for sentence in find(metrics.runs(result.runs.data)).values()
        ],
        "groups": _group_table(result.runs.data),
        "cards": _cards(summaries, alone=result.subject.flows + result.subject.datagrams == 1),
        "figures": result.figures,
        "drawn": _drawn(result.first, len(result.runs.names)),
        "warms_up": result.first.warmup_s > 0,
        "flows": tables.flow_table(result.runs),
        "runs": len(result.runs.names),
        "scenario": manifest.get("scenario") or "",
        "file": manifest.get("scenario_path") or "scenario.toml",
        "command": manifest.get("command") or "",
        "engine": manifest.get("engine") or "",
        "manifest": json.dumps(
            _cut({key: value for key, value in manifest.items() if key != "scenario"}), indent=2, ensure_ascii=False
        ),
    }


def _group_table(data: Recorded) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return headings and rows of who got what."""
    means = {
        name: {metric: found.as_dict() for metric, found in summaries.items()}
        for name, summaries in metrics.by_group(data).items()
    }
    heads, rows = summary_text.group_table(means)
    heads = [f"{head[0].upper()}{head[1:]}" for head in heads]
    if not 0 < len(rows) <= MAX_COLUMNS:
        return heads, rows
    first, *others = zip(heads, *rows, strict=True)
    return ["", *first[1:]], others


def _cards(summaries: Mapping[str, Summary], *, alone: bool) -> list[dict[str, str]]:
    """Return the main numbers: where groups compete, the smallest share, which Jain's index of like flows hides."""
    names = [name for name in metrics.main("card") if not (alone and metrics.METRICS[name].of_several)]
    if summaries["min_group_share"].n:
        names[names.index("jain")] = "min_group_share"
    return [_card(name, summaries[name]) for name in names if summaries[name].n]


def _card(name: str, summary: Summary) -> dict[str, str]:
    metric = metrics.METRICS[name]
    mean, interval = numbers.interval(summary.mean, summary.ci95_low, summary.ci95_high, metric.unit)
    return {"label": metric.label, "value": mean, "interval": interval if summary.n > 1 else ""}


def _drawn(view: RunView, runs: int) -> str:
    which = "the run" if view.seed is None else f"the run with {view.name}"
    return which if runs == 1 else f"{which}, the first of {runs}; the distributions show all runs"


def _runs_note(counts: Sequence[int], *, is_capture: bool) -> str:
    if max(counts) == 1 and is_capture:
        return "Seen once: no intervals."
    if max(counts) == 1:
        return "One run: no intervals. Run with more repeats to see how much runs differ."
    said = (
        f"{counts[0]} runs"
        if len(set(counts)) == 1
        else " and ".join(f"{n} runs" if n > 1 else "1 run (no interval)" for n in counts)
    )
    return f"Means over {said} with different seeds, and Student’s 95 % confidence intervals of these means."


def _titles(datasets: Sequence[Dataset], names: Iterable[str]) -> list[str]:
    """Return the scenarios' names; with engine or folder where they would be the same."""
    plans = [data.plan.name or name for data, name in zip(datasets, names, strict=False)]
    engines = [f"{plan} · {data.manifest.get('engine')}" for plan, data in zip(plans, datasets, strict=True)]
    folders = [f"{plan} · {name}" for plan, name in zip(plans, names, strict=False)]
    for titles in (plans, engines, folders):
        if len(set(titles)) == len(titles):
            return titles
    return [f"{title} ({number})" for number, title in enumerate(folders, start=1)]


def _cut(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _cut(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        kept = [_cut(item) for item in value[:MAX_ITEMS]]
        left = len(value) - len(kept)
        return [*kept, f"… {left:,} more in manifest.json"] if left else kept
    return value


def render_page(template: str, **content: Any) -> str:
    """Render a page from one of the templates. Names from files are text in it, and data cannot end a script."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    assets = Path(__file__).parent / "assets"
    environment = Environment(
        loader=FileSystemLoader(assets),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # These are our own files, not the user's.
    environment.globals["asset"] = lambda name: Markup((assets / name).read_text(encoding="utf-8"))
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return str(environment.get_template(template).render(content))


def write_page(text: str, out: Path | str) -> Path:
    """Write a page atomically and return its path. Raises `InputError` if it cannot be written."""
    path = Path(out)
    folders.atomic_write(path, lambda new: new.write_text(text, encoding="utf-8", errors="replace"))
    return path


#: Points of a layer of a figure of a sweep.
SWEEP_POINTS = 40_000

#: Points of a sweep that its table shows.
MAX_SWEEP_ROWS = 500


def write_sweeps(sweeps: Sequence[Swept], out: Path | str) -> Path:
    """Write the report of sweeps to `out` atomically and return its path. Raises `InputError`."""
    return write_page(render_sweeps(sweeps), out)


def render_sweeps(sweeps: Sequence[Swept]) -> str:
    """Return the report of sweeps as HTML."""
    panels = (
        experiment_figures.maps(sweeps[0]) if experiment_figures.is_map(sweeps) else experiment_figures.charts(sweeps)
    )
    figures = [figure(_sweep_drawing(name, panel), SWEEP_POINTS) for name, panel in panels.items()]
    names = list(panels)
    return render_page(
        "sweep.html.j2",
        title=sweeps[0].name,
        engines=", ".join(dict.fromkeys(sweep.engine for sweep in sweeps)),
        drawn=figures,
        keys=[axis.key for axis in sweeps[0].axes],
        heads=[metrics.METRICS[name].label for name in names],
        rows=[row for sweep in sweeps for row in _sweep_rows(sweep, names)][:MAX_SWEEP_ROWS],
        several=len(sweeps) > 1,
        conclusions=[
            (sweep.engine, said, summary_text.precision(sweep))
            for sweep in sweeps
            if (said := [*summary_text.sweep_sentences(sweep), *summary_text.phase_sentences(sweep)])
        ],
        warnings=[(sweep.engine, warning) for sweep in sweeps for warning in sweep.warnings],
        one_run=all(point["n"] < 2 for sweep in sweeps for point in sweep.points),
        not_shared=sweep_axes.not_shared(sweeps),
        points=sum(len(sweep.points) for sweep in sweeps),
        sweeps=[_sweep_commands(sweep) for sweep in sweeps],
        figures={f"sweep-{figure.key}": figure.spec() for figure in figures},
        version=sweeps[0].manifest.get("ackclock"),
    )


def _sweep_drawing(name: str, panel: Panel) -> Drawing:
    caption = f"{metrics.METRICS[name].label}: the value at each point; there are no intervals."
    if experiment_figures.has_intervals(panel):
        caption = f"{metrics.METRICS[name].label}: means over the seeds; the bars are 95 % intervals."
    elif any(isinstance(layer, Heat) for layer in panel.layers):
        caption = (
            f"{metrics.METRICS[name].label} at each point; the intervals, where there are any, are in the table below."
        )
    return Drawing(name, panel.title, caption, [panel])


def _sweep_rows(sweep: Swept, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return rows of engine, swept values, n, and the metrics."""
    return [
        (
            sweep.engine,
            *sweep_axes.values_of(sweep, point),
            str(point["n"]),
            *(summary_text.estimate(point["summary"][name], name) for name in names),
        )
        for point in sweep.points
    ]


def _sweep_commands(sweep: Swept) -> dict[str, str]:
    manifest = sweep.manifest
    return {
        "engine": sweep.engine,
        "file": str(manifest.get("scenario_path") or "scenario.toml"),
        "command": str(manifest.get("command") or f"ackclock sweep {manifest.get('scenario_path')}"),
        "scenario": str(manifest["sweep"]["scenario"]),
    }
