"""Results in sentences: conclusions of a report, the best points of a sweep, and what a perturbed run showed.

Used by reports, by the command line, and by the sentences of searches and sweeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ackclock import repr_format
from ackclock.figures import numbers, sweep_axes
from ackclock.figures.sweep_axes import Swept
from ackclock.metrics import JAIN_OF_ALL, METRICS, RunView, Summary, groups
from ackclock.metrics.protocols import PHASE
from ackclock.metrics.summary import student_quantile
from ackclock.metrics.view import group_name
from ackclock.scenario.points import short_keys

#: Means that differ by less than this, relatively, are called no different, however sure the difference is.
MIN_DIFFERENCE = 0.01

THRESHOLD = "Points within 1 % of the best count as equal to it."

#: Questions: metric, whether the highest is best, description of the best result, noun.
QUESTIONS = (
    ("utilisation", True, "used the link best", "utilisation"),
    ("queue_delay_mean_s", False, "kept the queue shortest", "mean queueing delay"),
    ("jain", True, "shared most evenly", "Jain's index"),
    ("loss_rate", False, "lost least", "loss rate"),
)

#: From these values of Jain's index on, the shares are called so.
FAIRNESS = ((0.98, "close to equal"), (0.9, "uneven"), (0.0, "very unequal"))

COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

HOLDS = "Not phase-locked: noise in the hosts changes no main metric."
NONE_LOCKED = "No point is phase-locked: noise in the hosts changes no main metric."

#: Why a circuit breaker ended a flow, by the value of its event (RFC 8083 sections 4.1 to 4.3).
TRIPS = {
    1: "no reports arrived",
    2: "the reports had nothing new",
    3: "it sent more than ten times what TCP would at its loss",
}

#: Maximum number of links that are named.
MAX_LINKS = 2

#: Names of so many points are given.
MAX_NAMED = 4


def counted(number: int, noun: str) -> str:
    """Return `ten flows`, `one flow`, `40 flows`."""
    text = repr_format.counted(number, noun)
    return text.replace(str(number), COUNTS[number], 1) if number < len(COUNTS) else text


@dataclass(frozen=True, slots=True)
class Subject:
    """Facts for the sentences: a result's name, its summaries, and a few numbers of its plan.

    `flows` are those of TCP, on average over the runs, `datagrams` those of UDP; `rate_bps` is that of all bottlenecks
    together, of which there are none where no link is known.
    """

    name: str
    summaries: Mapping[str, Summary]
    flows: int
    seeds: int
    rate_bps: float | None
    base_rtt_s: float | None
    slowest_bps: float | None
    fastest_bps: float | None
    bottlenecks: int = 1
    datagrams: int = 0
    groups: int = 1
    limiting: tuple[str, ...] = ("bottleneck",)

    def mean(self, metric: str) -> float | None:
        """Return a metric's mean over the runs."""
        result = self.summaries.get(metric)
        return None if result is None else result.mean


def bottleneck(view: RunView, alone: str) -> str:
    """Return what limited the flows of a run: the names of the links; `alone` where the plan has one bottleneck."""
    if len(view.plan.bottlenecks) < 2:
        return alone
    names = [view.plan.links[number].name or str(number) for number in view.limiting]
    return _few(names) or f"the {len(names):,} links that limited flows:"


def _few(names: Sequence[str]) -> str:
    """Return the names of links, joined; nothing where they are too many to name."""
    return " and ".join(names) if len(names) <= MAX_LINKS else ""


def metric_label(name: str, *, competing: bool) -> str:
    """Return a metric's label; where groups compete Jain's index says of which flows it is, since it is not of all."""
    return f"{METRICS[name].label}{' of like flows' if competing and name == 'jain' else ''}"


def subject_of(
    name: str,
    view: RunView,
    summaries: Mapping[str, Summary],
    flow_counts: Sequence[int],
    rates_bps: tuple[float | None, float | None],
) -> Subject:
    """Return the subject of one result: `flow_counts` are by run, `rates_bps` its flows' smallest and largest."""
    links = [view.plan.links[number] for number in view.limiting] if view.plan.links else []
    rates = [rate for number in view.limiting if (rate := view.plan.capacity_bps(number)) is not None]
    return Subject(
        name,
        summaries,
        round(sum(flow_counts) / len(flow_counts)),
        len(flow_counts),
        sum(rates) if rates and len(rates) == len(links) else None,
        view.plan.mean_base_rtt_s,
        *rates_bps,
        bottlenecks=max(len(view.plan.bottlenecks), 1) if view.plan.links else 0,
        datagrams=view.datagrams.height,
        groups=len(groups.present(view)),
        limiting=tuple(link.name or "" for link in links),
    )


def result_sentences(subject: Subject) -> list[str]:
    """Return sentences on utilisation, fairness, delay, loss and confidence."""
    parts = [say(subject) for say in (_use, _fairness, _delay, _loss, _completion, _certainty)]
    return [part for part in parts if part]


def _place(subject: Subject) -> str:
    """Return what the flows shared: `the bottleneck`, or the names of those of several that limited them."""
    if subject.bottlenecks < 2:
        return "the bottleneck"
    count, names = len(subject.limiting), _few(subject.limiting)
    if not names:
        return f"{count:,} of {subject.bottlenecks:,} links that may limit flows"
    return f"{names} ({counted(count, 'link')} of {subject.bottlenecks:,} that limited flows)"


def _use(subject: Subject) -> str:
    share, goodput = subject.mean("utilisation"), subject.mean("goodput_bps")
    several, is_single = len(subject.limiting) > 1, subject.flows == 1 and not subject.datagrams
    place = _place(subject)
    extra = f" with {counted(subject.datagrams, 'UDP flow')}" if subject.datagrams else ""
    did = f"shared {place}{extra}" if not is_single else f"crossed {place}" if several else f"had {place} to itself"
    if not subject.bottlenecks:
        did = f"{'was' if subject.flows == 1 else 'were'} seen{extra}"
    start = f"{counted(subject.flows, 'flow').capitalize()} {did}"
    rate = numbers.value(subject.rate_bps, "bit/s") if subject.rate_bps else "rate"
    of = f"{'their' if several else 'its'} {rate}"
    facts = [f"used {numbers.value(share, 'share')} of {of}"] if share is not None else []
    data = "TCP data" if subject.datagrams else "data"
    facts += [f"delivered {numbers.value(goodput, 'bit/s')} of {data}"] if goodput is not None else []
    return f"{start}: {'it' if is_single else 'together they'} {' and '.join(facts)}." if facts else f"{start}."


def _fairness(subject: Subject) -> str:
    index, whose = subject.mean("jain"), "like flows"
    if index is None:
        index, whose = subject.mean(JAIN_OF_ALL), "the flows, of which no two are alike,"
    if index is None or subject.flows < 2:
        return ""
    word = next(word for least, word in FAIRNESS if index >= least)
    ends = ""
    if subject.groups < 2 and subject.slowest_bps is not None and subject.fastest_bps is not None:
        slow, fast = numbers.value(subject.slowest_bps, "bit/s"), numbers.value(subject.fastest_bps, "bit/s")
        ends = f": the slowest flow got {slow}, the fastest {fast}"
    return f"The shares of {whose} were {word} (Jain's index {numbers.value(index, '1')}){ends}."


def _delay(subject: Subject) -> str:
    mean_s, p95_s = subject.mean("queue_delay_mean_s"), subject.mean("queue_delay_p95_s")
    if mean_s is None:
        return ""
    p95_text = f", 95 % of them at most {numbers.value(p95_s, 's')}" if p95_s is not None else ""
    base = f", on top of {numbers.value(subject.base_rtt_s, 's')} of base round-trip time" if subject.base_rtt_s else ""
    return f"Packets waited {numbers.value(mean_s, 's')} on average in the queue{p95_text}{base}."


def _loss(subject: Subject) -> str:
    rate, epochs, share = (subject.mean(name) for name in ("loss_rate", "congestion_epochs", "synchronisation"))
    if rate is None:
        return ""
    if rate == 0:
        return "No packet was lost there."
    text = f"It lost {numbers.value(rate, 'share', 2)} of the packets"
    if not epochs or share is None or subject.flows < 2:
        return text + "."
    each = "a run, " if subject.seeds > 1 else ""
    hit = f"each of which hit {numbers.value(share, 'share', 2)} of the flows on average"
    noun = "congestion epoch" if epochs == 1 else "congestion epochs"
    return f"{text}, in {numbers.value(epochs, '')} {noun} {each}{hit}."


def _completion(subject: Subject) -> str:
    mean_s, p95_s = subject.mean("fct_mean_s"), subject.mean("fct_p95_s")
    if mean_s is None or p95_s is None:
        return ""
    if subject.flows == 1:
        return f"The transfer took {numbers.value(mean_s, 's')}."
    return f"Transfers took {numbers.value(mean_s, 's')} on average, 95 % of them at most {numbers.value(p95_s, 's')}."


def _certainty(subject: Subject) -> str:
    if subject.seeds < 2 and not subject.bottlenecks:
        return "It was seen once: nothing tells how much another time would differ, and no interval is given."
    if subject.seeds < 2:
        return "This is one run: it does not show how much another would differ, so there is no interval."
    runs = counted(subject.seeds, "run")
    return f"Values are means over {runs} with different seeds; the intervals below are 95 % confidence intervals."


#: Columns of the table of groups: heading, and the metrics of which the first that has a value is shown.
GROUP_COLUMNS = (
    ("flows", ("flows_active",)),
    ("goodput", ("goodput_bps", "udp_goodput_bps")),
    ("of the bottleneck", ("efficiency",)),
    ("a flow's mean", ("goodput_mean_bps",)),
    ("smallest of a flow", ("goodput_min_bps",)),
    ("greatest of a flow", ("goodput_max_bps",)),
    ("RTT", ("rtt_mean_s",)),
    ("retransmitted", ("retransmission_rate", "retransmissions")),
    ("datagrams lost", ("udp_loss_rate",)),
    ("95 % of packets within", ("one_way_delay_p95_s",)),
    ("95 % of frames within", ("frame_delay_p95_s",)),
    ("freezes", ("freezes",)),
    ("completion time", ("fct_mean_s",)),
    ("95 % of them within", ("fct_p95_s",)),
    ("unfinished", ("unfinished",)),
)


def group_table(by_group: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of who got what, from the `groups` of `metrics.table`: means over the runs.

    Columns without values are left out.
    """
    cells = {name: [_group_cell(means, metrics) for _, metrics in GROUP_COLUMNS] for name, means in by_group.items()}
    used = [n for n in range(len(GROUP_COLUMNS)) if any(row[n] != numbers.NOTHING for row in cells.values())]
    heads = ["group", *(GROUP_COLUMNS[n][0] for n in used)]
    return heads, [[name, *(row[n] for n in used)] for name, row in cells.items()]


def _group_cell(means: Mapping[str, Mapping[str, Any]], metrics: Sequence[str]) -> str:
    known = ((means[name]["mean"], METRICS[name].unit) for name in metrics if means[name]["mean"] is not None)
    is_alone = means["flows_active"]["mean"] == 1 and metrics[0] in ("goodput_min_bps", "goodput_max_bps")
    return numbers.NOTHING if is_alone else numbers.value(*next(known, (None, "")))


def starvation(views: Iterable[RunView]) -> dict[str, str]:
    """Return a sentence for each group of which flows starve in a run, by its name: the run in which most do."""
    worst: dict[str, tuple[int, str]] = {}
    for view in views:
        for name, few, count in groups.starved(view):
            goodput_bps, fair_bps = (
                sum(values) / len(few) for values in zip(*((f.goodput_bps, f.fair_bps) for f in few), strict=True)
            )
            text = (
                f"Starved: {'the only flow' if count == 1 else f'{len(few)} of {count} flows'} of {name} got "
                f"{numbers.value(goodput_bps, 'bit/s')}, less than a tenth of the max-min fair share of "
                f"{numbers.value(fair_bps, 'bit/s')} ({view.name})."
            )
            worst[name] = max(worst.get(name, (0, "")), (len(few), text), key=lambda pair: pair[0])
    return {name: text for name, (_, text) in worst.items()}


def ended_flows(views: Iterable[RunView]) -> dict[str, str]:
    """Return a sentence for each group of which circuit breakers ended flows in a run, by its name.

    It is about the run in which most ended.
    """
    worst: dict[str, tuple[int, str]] = {}
    for view in views:
        trips = view.events_of("circuit_breaker") if view.has_datagrams else pl.DataFrame()
        if trips.is_empty():
            continue
        names = {row["flow"]: group_name(row, view.plan) for row in view.datagrams.iter_rows(named=True)}
        for name in dict.fromkeys(names.values()):
            own = trips.filter(pl.col("flow").is_in([flow for flow in names if names[flow] == name]))
            if own.height > worst.get(name, (0, ""))[0]:
                worst[name] = own.height, _ended_sentence(name, own, [*names.values()].count(name), view.name)
    return {name: text for name, (_, text) in worst.items()}


def _ended_sentence(name: str, trips: pl.DataFrame, count: int, run: str) -> str:
    first = trips.row(0, named=True)
    some = "the only flow" if count == 1 else f"{trips.height} of {count} flows"
    when = "at" if trips.height == 1 else f"the first, flow {first['flow']}, at"
    return (
        f"Circuit breaker: {some} of {name} ended for good, {when} {numbers.value(first['time_s'], 's')}: "
        f"{TRIPS[int(first['value'])]} ({run})."
    )


def comparison_sentences(subjects: Sequence[Subject]) -> list[str]:
    """Return which result was best in each metric, where best and next clearly differ."""
    result = (_best(subjects, *question) for question in QUESTIONS)
    return [sentence for sentence in result if sentence]


def _best(subjects: Sequence[Subject], metric: str, highest: bool, praise: str, noun: str) -> str:
    known = [subject for subject in subjects if subject.mean(metric) is not None]
    if len(known) < 2:
        return ""
    ranked = sorted(known, key=lambda subject: subject.mean(metric) or 0.0, reverse=highest)
    best, following = (subject.summaries[metric] for subject in ranked[:2])
    unit = METRICS[metric].unit
    values = f"{numbers.value(best.mean, unit)}, the next {numbers.value(following.mean, unit)}"
    if doubt := _doubt(best, following):
        return f"No clear difference in {noun} between the best two ({values}: {doubt})."
    return f"“{ranked[0].name}” {praise} ({noun} {values})."


def _doubt(one: Summary, other: Summary) -> str:
    """Return why two means are not called different; empty where they differ significantly."""
    overlap = _overlap((one.ci95_low, one.ci95_high), (other.ci95_low, other.ci95_high))
    if overlap is None:
        return "one run has no interval"
    if abs((one.mean or 0.0) - (other.mean or 0.0)) < MIN_DIFFERENCE * abs(one.mean or 0.0):
        return "less than 1 % apart"
    return "their intervals overlap" if overlap else ""


def _overlap(one: tuple[float | None, float | None], other: tuple[float | None, float | None]) -> bool | None:
    """Return True if two intervals overlap; None if one of them is unknown."""
    (low, high), (other_low, other_high) = one, other
    if low is None or high is None or other_low is None or other_high is None:
        return None
    return low <= other_high and other_low <= high


def sweep_sentences(sweep: Swept) -> list[str]:
    """Return the best points in the metrics that the sweep has, a line for each metric."""
    if len(sweep.points) < 2:
        return []
    answers = (
        _best_point(sweep, metric, highest, noun) for metric, highest, _, noun in QUESTIONS if metric in sweep.metrics
    )
    return [answer for answer in answers if answer]


def _best_point(sweep: Swept, metric: str, highest: bool, noun: str) -> str:
    known = [(_name(sweep, point), of) for point in sweep.points if (of := point["summary"][metric])["n"]]
    if len(known) < 2:
        return ""
    ranked = sorted(known, key=lambda pair: float(pair[1]["mean"]), reverse=highest)
    at, best = ranked[0]
    alike = sum(abs(of["mean"] - best["mean"]) <= MIN_DIFFERENCE * abs(best["mean"]) for _, of in ranked)
    mean = estimate(best, metric)
    if alike == len(ranked):
        return f"{noun[0].upper()}{noun[1:]}: no difference; all {alike:,} points are within 1 % of {mean}."
    if alike > 1:
        at += f" and within 1 % at {repr_format.counted(alike - 1, 'other point')}"
    name, following = ranked[alike]
    overlap = _overlap(*((of["ci95_low"], of["ci95_high"]) for of in (best, following)))
    unclear = ", not clearly worse (the intervals overlap)" if overlap else ""
    then = f"{estimate(following, metric)} at {name}{unclear}"
    return f"{'Highest' if highest else 'Lowest'} {noun}: {mean} at {at}; next: {then}."


def estimate(summary: Mapping[str, Any], metric: str) -> str:
    """Return the mean of a metric at a point of a sweep, with half the width of its interval if there is one."""
    return numbers.estimate(summary["mean"], summary["ci95_low"], summary["ci95_high"], METRICS[metric].unit)


def _name(sweep: Swept, point: Mapping[str, Any]) -> str:
    pairs = zip(short_keys(sweep.axes), sweep_axes.values_of(sweep, point), strict=True)
    return ", ".join(f"{key} {value}" for key, value in pairs)


def precision(sweep: Swept) -> str:
    """Return how sure the values of a sweep's points are."""
    least = min((point["n"] for point in sweep.points), default=0)
    if least < 2:
        return f"Each point is one run, so there are no intervals, and another run may differ. {THRESHOLD}"
    text = f"Values are means over {least} seeds ± half of their 95 % intervals. {THRESHOLD}"
    if least == 2:
        wide = f"With two seeds an interval reaches {student_quantile(1):.1f} standard errors to each side"
        text += f" {wide}, which is wide: more seeds (--repeats) narrow it."
    return text


def how(sweeps: Sequence[Swept]) -> str:
    """Return what each point of a figure is, for its heading."""
    repeats = max((int(point["n"]) for sweep in sweeps for point in sweep.points), default=0)
    return "one run each" if repeats < 2 else "means over the seeds"


def phase_sentences(sweep: Swept) -> list[str]:
    """Return which points are phase-locked; nothing if no perturbed runs were made."""
    checked = [(_name(sweep, point), point[PHASE]) for point in sweep.points if PHASE in point]
    locked = [(name, result) for name, result in checked if result["locked"]]
    if not locked:
        return [NONE_LOCKED] if checked else []
    sentences_ = [
        f"{name}: {phase_sentence(result)}" if name else phase_sentence(result) for name, result in locked[:MAX_NAMED]
    ]
    more = len(locked) - len(sentences_)
    return [*sentences_, f"… and {more:,} more of {len(checked):,} points are phase-locked."] if more else sentences_


def phase_sentence(result: Mapping[str, Any]) -> str:
    """Return a result's `phase` as a sentence or two."""
    if not result["locked"]:
        return HOLDS
    moved = "; ".join(f"{METRICS[name].label} {_phase_change(name, both)}" for name, both in result["moved"].items())
    return f"Phase-locked: noise in the hosts changes the result. {moved}."


def _phase_change(name: str, both: Mapping[str, Sequence[float]]) -> str:
    here, twin = (_with_interval(both[side], METRICS[name].unit) for side in ("here", "twin"))
    return f"{here} here, {twin} with noise"


def _with_interval(bounds: Sequence[float], unit: str) -> str:
    value, low, high = bounds
    mean, interval = numbers.interval(value, low, high, unit)
    return f"{mean} ({interval})"
