"""The metrics: one small file a family, one list of all.

    from ackclock import metrics
    metrics.table(data)          # {"scenario", "engine", "runs": [{"seed", "metrics"}], "summary"}
    metrics.METRICS["jain"]      # its unit, label, definition and function
    metrics.main("table")        # those of the table that `ackclock run` prints
    metrics.table(data, between=(20, 40))          # of a part of each run, in seconds
    metrics.response_times(data)                   # completion times by size
    metrics.epochs(data)                           # the congestion epochs
    metrics.epochs_by_rule(data)                   # the same by three rules of what an epoch is
    metrics.window_reductions(data)                     # the total window before and after each
    metrics.shared_bottlenecks(data)               # which flows' RTTs go together
    metrics.by_group(data)                         # goodput, delay, losses and completion times of each group
    metrics.flow_goodput(data)                     # goodput of each flow, with its label
    metrics.flow_means(data)                       # goodput, loss, RTT and window of each flow
    metrics.cdf(data, "fct_s")              # distribution functions
    metrics.windows_over_time(data)                # mean and coefficient of variation of the windows at each instant
    metrics.slowdowns(data)                        # completion times over those of an empty network, by size
    metrics.within_deadline(data, [0.01, 0.1])     # share of the transfers that met a deadline
    metrics.shared_paths(data)                     # which flows share a path
    metrics.cubic_epochs(data)                     # how CUBIC's window follows its curve
    metrics.robustness(data, baseline)             # what is left of each metric under a challenge
    metrics.responsiveness_at(data, [20, 40])      # how soon it is steady again after these instants

To add one, write a function of a `RunView` whose docstring defines it and cites its source, and add it to its
file's `METRICS`; with ranks, if it is a main one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from ackclock.errors import InputError
from ackclock.input import arguments
from ackclock.input.arguments import checked, one_of, optional, several
from ackclock.input.fields import nearest, shown
from ackclock.metrics import (
    completion,
    delay,
    dynamics,
    epoch,
    fairness,
    groups,
    loss,
    media,
    oscillation,
    sharing,
    slowdown,
    throughput,
)
from ackclock.metrics.completion import response_times
from ackclock.metrics.distributions import cdf, windows_over_time
from ackclock.metrics.dynamics import responsiveness_at
from ackclock.metrics.epoch import epochs_by_rule, window_reductions
from ackclock.metrics.flow_tables import cubic_epochs, flow_goodput, flow_means
from ackclock.metrics.metric import OF_GROUP, PLACES, Metric, Metrics, Value
from ackclock.metrics.protocols import PHASE, Recorded
from ackclock.metrics.sharing import shared_bottlenecks, shared_paths
from ackclock.metrics.slowdown import slowdowns, within_deadline
from ackclock.metrics.summary import Summary, summarise
from ackclock.metrics.view import ALL_FLOWS, RunView, runs
from ackclock.partial_plan import groups_of

__all__ = [
    "METRICS",
    "Metric",
    "RunView",
    "Summary",
    "by_group",
    "cdf",
    "check_names",
    "cubic_epochs",
    "epochs",
    "epochs_by_rule",
    "flow_goodput",
    "flow_means",
    "is_shown",
    "main",
    "of_run",
    "response_times",
    "responsiveness_at",
    "robustness",
    "runs",
    "shared_bottlenecks",
    "shared_paths",
    "slowdowns",
    "summarise",
    "summary",
    "table",
    "value",
    "window_reductions",
    "windows_over_time",
    "with_groups",
    "within_deadline",
]

FAMILIES = (
    throughput,
    fairness,
    groups,
    loss,
    delay,
    epoch,
    completion,
    slowdown,
    dynamics,
    oscillation,
    sharing,
    media,
)

#: Expected argument of a run's metrics.
RUN = "a run, as metrics.runs gives"

#: Every metric by its name; those of one group as well (`METRICS["goodput_bps[web]"]`), which are not listed.
METRICS: Mapping[str, Metric] = Metrics({metric.name: metric for family in FAMILIES for metric in family.METRICS})


#: Jain's index of all flows as one group: where no two flows are alike, it is the only one.
JAIN_OF_ALL = "jain[*]"

#: Columns of `robustness`.
ROBUSTNESS_SCHEMA = {
    "metric": pl.String,
    "challenged": pl.Float64,
    "baseline": pl.Float64,
    "robustness": pl.Float64,
    "ci95_low": pl.Float64,
    "ci95_high": pl.Float64,
    "n": pl.Int64,
}

#: Metrics of robustness: performance for users and networks, and fairness.
ROBUST = ("goodput_bps", "utilisation", "jain", "fct_mean_s", "queue_delay_mean_s", "loss_rate", "timeouts")

#: Main metrics that are shown only where they are not 0: most queues do not mark.
ONLY_POSITIVE = ("mark_rate",)

#: Metrics of each of several bottlenecks in the table of a result, and most bottlenecks that it has.
LINKS_TABLE = ("utilisation", "queue_delay_mean_s", "queue_delay_p95_s", "loss_rate", "mark_rate")
MAX_LINKS = 8

#: Units at the end of names, which may be left out.
UNITS = ("", "_s", "_bps", "_p")


def full_name(name: str, among: Collection[str] = tuple(METRICS)) -> str | None:
    """Return the metric of this name, whose unit may be omitted (`queue_delay_p95`); None if there is none.

    Of a group of flows as well: `goodput[web]` is `goodput_bps[web]`, if `among` has `goodput_bps` or that itself.
    """
    match = OF_GROUP.fullmatch(name)
    base, group = (match[1], f"[{match[2]}]") if match else (name, "")
    for full in (f"{base}{unit}{group}" for unit in UNITS):
        if full in among or (group and full in METRICS and full.removesuffix(group) in among):
            return full
    return None


def check_names(metrics: Iterable[str], groups: Collection[str], links: Collection[str]) -> None:
    """Raise `InputError` for a metric of a group, or of a bottleneck, that is none of these."""
    for name in metrics:
        match = OF_GROUP.fullmatch(name)
        if match is None:
            continue
        of_links = METRICS[name].of_links
        known, kind = (links, "bottleneck") if of_links else (groups, "group")
        is_known = match[2] in links if of_links else match[2] == ALL_FLOWS or groups_of(match[2], list(groups))
        if not is_known:
            raise InputError(f"{name}: found no {kind} {shown(match[2])}; expected {nearest(match[2], known)}")


@checked(place=one_of(*PLACES))
def main(place: str) -> list[str]:
    """Return the names of the main metrics in one of `metric.PLACES`, in their order there."""
    ranks = {name: rank for name, metric in METRICS.items() if (rank := metric.rank(place))}
    return sorted(ranks, key=lambda name: ranks[name])


def with_groups(names: Iterable[str], among: Collection[str]) -> list[str]:
    """Return metrics by name, each followed by itself of single groups, if `among` has it: `goodput_bps[web]`."""
    matches = [match for name in among if (match := OF_GROUP.fullmatch(name)) and match[2] != ALL_FLOWS]
    return [each for name in names for each in (name, *(match[0] for match in matches if match[1] == name))]


@checked(view=arguments.a(RunView, RUN))
def of_run(view: RunView) -> dict[str, Value]:
    """Return all metrics of one run, and Jain's index of all flows, computed once for each dataset."""
    measured, which = view.data.measured, (view.run, view.between, view.rule)
    if which not in measured:
        measured[which] = {name: value(view, name) for name in (*METRICS, JAIN_OF_ALL)}
    return dict(measured[which])


def value(view: RunView, name: str) -> Value:
    """Return one metric of one run: as its engine gave it for want of tables, else from the tables; null if not finite.

    Raises `InputError` for a metric that there is not.
    """
    if not isinstance(view, RunView):
        arguments.wrong_type("view", view, RUN)
    if name not in METRICS:
        one_of(*METRICS)("name", name)
    metric = METRICS[name]
    return _finite(view.given[name] if name in view.given else metric.function(view))


def is_shown(name: str, means: Iterable[float | None]) -> bool:
    """Return True for a metric that belongs in a table of the main ones, by its means in the table's columns."""
    known = [mean for mean in means if mean is not None]
    return any(known) if name in ONLY_POSITIVE else bool(known)


@checked(values=several(arguments.a(Mapping, "metrics by name"), "the metrics of some runs"))
def summary(values: Sequence[Mapping[str, Value]]) -> dict[str, Summary]:
    """Return each metric's summary over runs; lists (a value for each flow) have none."""
    names = dict.fromkeys([*METRICS, *(name for run in values for name in run)])
    scalars = [METRICS[name] for name in names if not METRICS[name].per_flow]
    return {metric.name: _summary(metric, [_scalar(run.get(metric.name)) for run in values]) for metric in scalars}


def _summary(metric: Metric, values: list[float | None]) -> Summary:
    return summarise(values, 0.0, metric.maximum)


def epochs(data: Recorded, between: tuple[float, float] | None = None, rule: str | None = None) -> pl.DataFrame:
    """Return the congestion epochs of all runs, a row each, in order.

    `run`, `seed`; `epoch`, its number in the run; `start_s` and `end_s`, its first and last drop; `drops`, packets
    dropped; `flows_hit`, the synchronised flows: those that lost one; `flows_active` that were there; `share`, hit out
    of active. `between` selects a part of each run (seconds); `rule` defines an epoch: "gap", "first" or
    "per RTT" (`metrics.epoch_rules`); None: as the scenario gives.
    """
    result = [
        view.cached(epoch.epochs).select(
            pl.lit(view.run, pl.UInt32).alias("run"), pl.lit(view.seed, pl.Int64).alias("seed"), pl.all()
        )
        for view in runs(data, between, rule)
    ]
    return pl.concat(result) if result else pl.DataFrame()


def robustness(challenged: Recorded, baseline: Recorded, between: tuple[float, float] | None = None) -> pl.DataFrame:
    """Return the ratio of each metric in a challenging environment to its baseline, a row a metric.

    A challenging environment has corrupted packets, varying rates, reordering or failing links. RFC 5166 section 2.4
    asks how performance suffers there, so robustness is no quantity but a comparison: the same scenario with and
    without the challenge, seed by seed. That the comparison is a ratio is our reading.

    `challenged` and `baseline`, the means over the runs; `robustness`, the mean over the seeds that both have of the
    ratio of the two, with Student's 95 % interval: 1 if the challenge does not matter; of goodput, fairness and
    utilisation less the more they suffer, of times, delays and losses more. `between` looks at a part of each run
    (seconds), such as that after a link has failed. Raises `InputError` without a common seed. Source: RFC 5166
    section 2.4; Guillier 2008 (table of metrics: robustness).
    """
    pairs = _paired(challenged, baseline, between)
    found = ((name, [(value(hard, name), value(easy, name)) for hard, easy in pairs]) for name in ROBUST)
    rows = [row for name, values in found if (row := _robustness_row(name, values))]
    return pl.DataFrame(rows, schema=ROBUSTNESS_SCHEMA, orient="row")


def table(data: Recorded, between: tuple[float, float] | None = None, epochs: str | None = None) -> dict[str, Any]:
    """Return the metrics of each run and their summaries, as `ackclock run --json` prints them.

    With `between`, of that part of each run (seconds, from and to), the warm-up not considered: for runs with phases.
    What the engine counted over the whole measured part only is null there; goodputs, utilisation, delays and loss
    come from samples (a flow without samples is taken to deliver evenly from its start to its end). Transfers belong
    to the part in which they began, and count as unfinished at its end. `epochs` is the rule of what a congestion epoch
    is, if another than the scenario's.

    `groups` has the summaries of each group (`by_group`), `links` those of each bottleneck where there are several.

    A result with which a perturbed run was made has a key `phase` as well: `{locked, moved}`.
    """
    views = list(runs(data, between, epochs))
    values = [of_run(view) for view in views]
    phase = {key: data.manifest[key] for key in (PHASE,) if key in data.manifest}
    return {
        "scenario": data.plan.name,
        "engine": data.manifest.get("engine"),
        "runs": [{"seed": view.seed, "metrics": result} for view, result in zip(views, values, strict=True)],
        "summary": {name: result.as_dict() for name, result in summary(values).items()},
        "groups": _as_dicts(_by_group(views)),
        "links": _as_dicts(_by_link(views)),
        **phase,
    }


@checked(data=arguments.RECORDED, between=optional(arguments.BETWEEN))
def by_group(data: Recorded, between: tuple[float, float] | None = None) -> dict[str, dict[str, Summary]]:
    """Return who got what: for each group of the scenario the summaries of `groups.TABLE` over the runs.

    Groups of one name are one; those without a flow in any run are left out.
    """
    return _by_group(list(runs(data, between)))


def _by_link(views: Sequence[RunView]) -> dict[str, dict[str, Summary]]:
    """Return the summaries of `LINKS_TABLE` of each bottleneck; nothing where there is one, or more than are shown."""
    links = views[0].plan.links if views else ()
    names = dict.fromkeys(link.name for link in links if link.bottleneck and link.name)
    if not 2 <= len(names) <= MAX_LINKS:
        return {}
    return {link: _of_part(views, LINKS_TABLE, link) for link in names}


def _of_part(views: Sequence[RunView], names: Sequence[str], part: str) -> dict[str, Summary]:
    """Return the summaries of metrics of one group, or of one bottleneck."""
    return {
        name: _summary(METRICS[name], [_scalar(value(view, f"{name}[{part}]")) for view in views]) for name in names
    }


def _as_dicts(by_part: Mapping[str, Mapping[str, Summary]]) -> dict[str, dict[str, dict[str, float | int | None]]]:
    return {part: {name: one.as_dict() for name, one in summaries.items()} for part, summaries in by_part.items()}


def _by_group(views: Sequence[RunView]) -> dict[str, dict[str, Summary]]:
    names = dict.fromkeys(name for view in views for name in groups.present(view))
    return {group: _of_part(views, groups.TABLE, group) for group in names}


def _finite(value: Value) -> Value:
    """Return null for values that JSON cannot express (NaN, infinity)."""
    if isinstance(value, list):
        return value if all(map(math.isfinite, value)) else None
    return None if value is None or not math.isfinite(value) else float(value)


def _scalar(value: Value) -> float | None:
    return None if isinstance(value, list) else value


def _paired(
    challenged: Recorded, baseline: Recorded, between: tuple[float, float] | None
) -> list[tuple[RunView, RunView]]:
    """Return the runs with the same seed. Raises `InputError` if there are none."""
    easy = {view.seed: view for view in runs(baseline, between)}
    pairs = [(view, easy[view.seed]) for view in runs(challenged, between) if view.seed in easy]
    if not pairs:
        raise InputError("baseline: found no run with a seed of the challenged result; expected the same seeds")
    return pairs


def _robustness_row(name: str, result: Sequence[tuple[Value, Value]]) -> tuple[object, ...] | None:
    valid = [(h, e) for h, e in result if isinstance(h, float) and isinstance(e, float)]
    if not valid:
        return None
    ratio = summarise([h / e for h, e in valid if e], minimum=0.0)
    hard, easy = (sum(column) / len(valid) for column in zip(*valid, strict=True))
    return name, hard, easy, ratio.mean, ratio.ci95_low, ratio.ci95_high, ratio.n
