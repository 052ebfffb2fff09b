"""The analysis in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.experiments.effects.anova import Step, Term
from ackclock.experiments.effects.effects import Effects
from ackclock.figures import numbers
from ackclock.metrics import METRICS

#: Names of the error estimates.
ERRORS = {
    "repeats": "Intervals come from the repeats of each point",
    "model": "There are no repeats: intervals assume that no three keys interact",
    "factors": "Pairs of keys cannot be told apart: intervals assume that they do not interact",
    "none": "There are too few runs for intervals: add seeds (--repeats)",
}

#: Description of an interaction.
DEPENDS = "what one of the two does depends on the other"

#: A pair is told if it makes at least this share of the differences.
WORTH = 0.05


def sentences(found: Effects) -> list[str]:
    """Return sentences: the largest effect, the others, what has none, and how the errors are estimated."""
    return [*_largest(found), *_others(found), *_pairs(found), *_nothing(found), _error_text(found)]


def effect(found: Effects, step: Step) -> str:
    """`+11.3 ± 0.4 ms`; of a share `+3.1 ± 0.2 percentage points`."""
    unit = METRICS[found.metric].unit
    text = numbers.signed(step.effect, unit, step.half_width)
    return text.removesuffix("%") + "percentage points" if unit == "share" else text


def share(part: float) -> str:
    """`72 %`."""
    return f"{100 * part:.1f} %" if part < 0.1 else f"{100 * part:.0f} %"


def _largest(found: Effects) -> Iterator[str]:
    label = METRICS[found.metric].label
    first = found.terms[0]
    if found.analysis.error != "none" and not any(map(found.clear, found.terms)):
        yield f"{label}: no key has a clear effect."
        return
    most = f"{label}: {found.named(first)} matters most ({share(first.share)} of the differences)"
    yield f"{most}. {_does(found, first)}" if found.step(first) else f"{most}: {DEPENDS}."


def _does(found: Effects, term: Term) -> str:
    step = found.step(term)
    assert step is not None
    low, high = found.values(step)
    return f"From {low} to {high} the mean changes by {effect(found, step)}."


def _others(found: Effects) -> Iterator[str]:
    for term in found.terms[1:]:
        if found.step(term) and found.clear(term):
            yield f"{found.named(term)} ({share(term.share)}): {_does(found, term)[0].lower()}{_does(found, term)[1:]}"


def _pairs(found: Effects) -> Iterator[str]:
    told = [term for term in found.terms[1:] if len(term.factors) == 2 and found.clear(term) and term.share >= WORTH]
    for term in told:
        yield f"{found.named(term)} ({share(term.share)}): {DEPENDS}."


def _nothing(found: Effects) -> Iterator[str]:
    if found.analysis.error == "none" or not any(map(found.clear, found.terms)):
        return
    if idle := [found.named(term) for term in found.terms if found.step(term) and not found.clear(term)]:
        yield f"No clear effect: {', '.join(idle)}."


def _error_text(found: Effects) -> str:
    text = ERRORS[found.analysis.error]
    if found.analysis.error == "repeats" and found.seeds:
        text += ", of which the same seeds are compared with each other"
    if found.without:
        text += f". {found.without} of {found.runs + found.without} runs have no value"
    return f"{text}."
