"""Conclusions of a report, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ackclock.figures import curves, numbers
from ackclock.figures.sweep_summary import MIN_DIFFERENCE
from ackclock.metrics import RunView, Summary

#: From these values of Jain's index on, the shares are called so.
FAIRNESS = ((0.98, "close to equal"), (0.9, "uneven"), (0.0, "very unequal"))

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

Summaries = Mapping[str, Summary]


@dataclass(frozen=True, slots=True)
class Subject:
    """Facts for the sentences: a result's name, its summaries, and a few numbers of its plan.

    `flows` are those of TCP, `datagrams` those of UDP; `rate_bps` is that of all bottlenecks together, of which there
    are none where no link is known.
    """

    name: str
    summaries: Summaries
    flows: int
    seeds: int
    rate_bps: float | None
    base_rtt_s: float | None
    slowest_bps: float | None
    fastest_bps: float | None
    bottlenecks: int = 1
    datagrams: int = 0

    def mean(self, metric: str) -> float | None:
        """Return a metric's mean over the runs."""
        result = self.summaries.get(metric)
        return None if result is None else result.mean


def sentences(subject: Subject) -> list[str]:
    """Return sentences on utilisation, fairness, delay, loss and confidence."""
    parts = [say(subject) for say in (_use, _fairness, _delay, _loss, _completion, _certainty)]
    return [part for part in parts if part]


def comparison(subjects: Sequence[Subject]) -> list[str]:
    """Return which result was best in each metric, where best and next clearly differ (see `_doubt`)."""
    questions = (
        ("utilisation", True, "used the link best", "utilisation"),
        ("queue_delay_mean_s", False, "kept the queue shortest", "mean queueing delay"),
        ("jain", True, "shared most evenly", "Jain's index"),
        ("loss_rate", False, "lost least", "loss rate"),
    )
    result = (_best(subjects, *question) for question in questions)
    return [sentence for sentence in result if sentence]


def counted(number: int, noun: str) -> str:
    """Return `ten flows`, `one flow`, `40 flows`."""
    word = NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"
    return f"{word} {noun}{'' if number == 1 else 's'}"


def _use(subject: Subject) -> str:
    share, goodput = subject.mean("utilisation"), subject.mean("goodput_bps")
    several, is_single = subject.bottlenecks > 1, subject.flows == 1 and not subject.datagrams
    place = counted(subject.bottlenecks, "bottleneck") if several else "the bottleneck"
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
    index = subject.mean("jain")
    if index is None or subject.flows < 2:
        return ""
    word = next(word for least, word in FAIRNESS if index >= least)
    ends = ""
    if subject.slowest_bps is not None and subject.fastest_bps is not None:
        slow, fast = numbers.value(subject.slowest_bps, "bit/s"), numbers.value(subject.fastest_bps, "bit/s")
        ends = f": the slowest flow got {slow}, the fastest {fast}"
    return f"The shares were {word} (Jain's index {numbers.value(index, '1')}){ends}."


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
    return f"Transfers took {numbers.value(mean_s, 's')} on average, 95 % of them at most {numbers.value(p95_s, 's')}."


def _certainty(subject: Subject) -> str:
    if subject.seeds < 2 and not subject.bottlenecks:
        return "It was seen once: nothing tells how much another time would differ, and no interval is given."
    if subject.seeds < 2:
        return "This is one run: it does not show how much another would differ, so there is no interval."
    runs = counted(subject.seeds, "run")
    return f"Values are means over {runs} with different seeds; the intervals below are 95 % confidence intervals."


def _best(subjects: Sequence[Subject], metric: str, highest: bool, praise: str, noun: str) -> str:
    known = [subject for subject in subjects if subject.mean(metric) is not None]
    if len(known) < 2:
        return ""
    ranked = sorted(known, key=lambda subject: subject.mean(metric) or 0.0, reverse=highest)
    best, following = (subject.summaries[metric] for subject in ranked[:2])
    unit = _unit(metric)
    values = f"{numbers.value(best.mean, unit)}, the next {numbers.value(following.mean, unit)}"
    if doubt := _doubt(best, following):
        return f"No clear difference in {noun} between the best two ({values}: {doubt})."
    return f"“{ranked[0].name}” {praise} ({noun} {values})."


def _doubt(one: Summary, other: Summary) -> str:
    """Return why two means are not called different; empty where they differ significantly."""
    ends = (one.ci95_low, one.ci95_high, other.ci95_low, other.ci95_high)
    if any(end is None for end in ends):
        return "one run has no interval"
    if abs((one.mean or 0.0) - (other.mean or 0.0)) < MIN_DIFFERENCE * abs(one.mean or 0.0):
        return "less than 1 % apart"
    low, high, other_low, other_high = (float(end) for end in ends if end is not None)
    return "" if high < other_low or other_high < low else "their intervals overlap"


def _unit(metric: str) -> str:
    from ackclock.metrics import METRICS

    return METRICS[metric].unit


def subject_of(
    name: str, view: RunView, summaries: Summaries, rates_bps: tuple[float | None, float | None], seeds: int
) -> Subject:
    """Return the subject of one result; `rates_bps` are its flows' smallest and largest."""
    links = [view.plan.links[number] for number in view.plan.bottlenecks]
    rates = [link.rate_bps for link in links if link.rate_bps is not None]
    return Subject(
        name,
        summaries,
        curves.tcp_flow_count(view),
        seeds,
        sum(rates) if rates and len(rates) == len(links) else None,
        view.plan.mean_base_rtt_s,
        *rates_bps,
        bottlenecks=max(len(links), 1) if view.plan.links else 0,
        datagrams=view.datagrams.height,
    )
