"""Summary of a sweep in sentences: the best point of each metric, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ackclock.figures import numbers, phase, sweep_axes
from ackclock.figures.sweep_axes import Swept
from ackclock.metrics import METRICS
from ackclock.metrics.protocols import PHASE
from ackclock.metrics.summary import student_quantile
from ackclock.scenario.points import short_keys

#: Means that differ by less than this, relatively, are called no different, however sure the difference is.
MIN_DIFFERENCE = 0.01

#: Questions: metric, whether the highest is best, description of the best.
QUESTIONS = (
    ("utilisation", True, "The link was used best"),
    ("queue_delay_mean_s", False, "The queue was shortest"),
    ("jain", True, "The shares were most even"),
    ("loss_rate", False, "The fewest packets were lost"),
)

THRESHOLD = "Means that differ by less than 1 % are called no different, however sure the difference is."

NONE_LOCKED = "No point is phase-locked: noise in the hosts changes no main metric."

#: Names of so many points are given.
MAX_NAMED = 4


@dataclass(frozen=True, slots=True)
class _Point:
    """A point's name, its mean, and the ends of its interval if it has one."""

    name: str
    mean: float
    ends: tuple[float, float] | None


def sentences(sweep: Swept) -> list[str]:
    """Return the best points in the metrics that the sweep has, and how sure they are."""
    if len(sweep.points) < 2:
        return []
    answers = [_best_point(sweep, *question) for question in QUESTIONS if question[0] in sweep.metrics]
    result = [answer for answer in answers if answer]
    return [*result, *_certainty(sweep)] if result else []


def phases(sweep: Swept) -> list[str]:
    """Return which points are phase-locked; nothing if no perturbed runs were made."""
    checked = [(_name(sweep, point), point[PHASE]) for point in sweep.points if PHASE in point]
    locked = [(name, result) for name, result in checked if result["locked"]]
    if not locked:
        return [NONE_LOCKED] if checked else []
    sentences_ = [
        f"{name}: {phase.sentence(result)}" if name else phase.sentence(result) for name, result in locked[:MAX_NAMED]
    ]
    more = len(locked) - len(sentences_)
    return [*sentences_, f"… and {more:,} more of {len(checked):,} points are phase-locked."] if more else sentences_


def _best_point(sweep: Swept, metric: str, highest: bool, praise: str) -> str:
    known = _points(sweep, metric)
    if len(known) < 2:
        return ""
    ranked = sorted(known, key=lambda point: point.mean, reverse=highest)
    best, label = ranked[0], _low(METRICS[metric].label)
    alike = [point for point in ranked if abs(point.mean - best.mean) <= MIN_DIFFERENCE * abs(best.mean)]
    value_text = _value(best, metric)
    if len(alike) == len(ranked):
        return f"No difference in {label}: all {len(ranked):,} points are within 1 % of the best ({value_text})."
    following = ranked[len(alike)]
    doubt = _doubt(best, following)
    then = f"{_value(following, metric)} at {following.name}"
    if len(alike) > 1:
        which = (
            f"{praise} at {_list(alike)} ({label} {value_text} at the first; those within 1 % of it are called equal)"
        )
    else:
        which = f"{praise} at {best.name} ({label} {value_text})"
    return f"{which}; the next is {then}{doubt}."


def _doubt(best: _Point, following: _Point) -> str:
    if best.ends is None or following.ends is None:
        return ", and how sure the difference is one run cannot say"
    if best.ends[1] < following.ends[0] or following.ends[1] < best.ends[0]:
        return ", and their 95 % intervals do not overlap"
    return ", but their 95 % intervals overlap, so which is better is not clear"


def _list(alike: Sequence[_Point]) -> str:
    names = [point.name for point in alike[:MAX_NAMED]]
    more = len(alike) - len(names)
    return "; ".join(names) + (f" and {more:,} more" if more else "")


def _points(sweep: Swept, metric: str) -> list[_Point]:
    result = []
    for point in sweep.points:
        of = point["summary"][metric]
        if of["n"]:
            ends = None if of["ci95_low"] is None else (of["ci95_low"], of["ci95_high"])
            result.append(_Point(_name(sweep, point), of["mean"], ends))
    return result


def _name(sweep: Swept, point: Mapping[str, Any]) -> str:
    pairs = zip(short_keys(sweep.axes), sweep_axes.values_of(sweep, point), strict=True)
    return ", ".join(f"{key} {value}" for key, value in pairs)


def _value(point: _Point, metric: str) -> str:
    low, high = point.ends or (None, None)
    return numbers.estimate(point.mean, low, high, METRICS[metric].unit)


def _certainty(sweep: Swept) -> list[str]:
    least = min(point["n"] for point in sweep.points)
    if least < 2:
        return [f"Each point is one run, so there are no intervals, and another run may differ. {THRESHOLD}"]
    text = f"Values are means over {least} seeds, ± half the width of their 95 % intervals. {THRESHOLD}"
    if least == 2:
        wide = f"With two seeds an interval reaches {student_quantile(1):.1f} standard errors to each side"
        text += f" {wide}, which is wide: more seeds (--repeats) narrow it."
    return [text]


def _low(label: str) -> str:
    """Lower the first letter of a label within a sentence: names keep their capital."""
    first = label.split(maxsplit=1)[0]
    return label if first.isupper() or first.endswith("'s") else label[0].lower() + label[1:]


def how(sweeps: Sequence[Swept]) -> str:
    """Return what each point of a figure is, for its heading."""
    return "one run each" if _max_repeats(sweeps) < 2 else "means over the seeds"


def _max_repeats(sweeps: Sequence[Swept]) -> int:
    every: list[Mapping[str, Any]] = [point for sweep in sweeps for point in sweep.points]
    return max((int(point["n"]) for point in every), default=0)
