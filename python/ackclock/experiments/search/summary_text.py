"""The answer in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized

from ackclock.experiments.search import criteria
from ackclock.experiments.search.candidates import QUEUE, limit_sentence, limit_size
from ackclock.experiments.search.criteria import FAILS, HOLDS, Constraint
from ackclock.experiments.search.result import NONE, SearchResult, summary
from ackclock.experiments.search.spec import Question
from ackclock.figures import numbers, summary_text
from ackclock.input.cli_values import KEYS
from ackclock.metrics import METRICS, Metric, Summary
from ackclock.scenario.points import label

#: Number of equally good settings that are named.
MAX_ALIKE = 5

#: A verdict of another engine in words.
CONFIRMED = {True: "agrees", False: "disagrees", None: "does not decide it"}


def sentences(answer: SearchResult) -> list[str]:
    """Return the result in sentences, with how certain it is."""
    parts = (_best_setting, _also_meeting, _next_setting, _others, _limits, _confirmed, _phase_dependence, _left)
    said = [line for part in parts for line in part(answer)]
    return [sentence for sentence in said if sentence]


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def measured(need: Constraint, found: Summary) -> str:
    """`utilisation 99.4 ± 0.1 % (required: ≥ 99%)`."""
    metric = METRICS[need.metric]
    value = numbers.estimate(found.mean, found.ci95_low, found.ci95_high, metric.unit)
    bound = need.text.removeprefix(need.metric).strip().replace(">=", "≥").replace("<=", "≤")
    return f"{_label(metric)} {value} (required: {bound})"


def _label(metric: Metric) -> str:
    """Return a label within a sentence."""
    return metric.label.lower() if metric.label[1:2].islower() else metric.label


def _best_setting(answer: SearchResult) -> Iterator[str]:
    question, best = answer.question, answer.best
    if best is None:
        what = "No setting" if answer.verdict == NONE else "No setting yet"
        count = question.rows * question.row
        sentence = f"{what} of {count:,} meets all requirements"
        if question.end and len(answer.verdicts) < count:
            sentence += (
                f": {len(answer.verdicts):,} were evaluated, as none is sought between two that fail the same "
                "requirement. If a metric is best inside the range, use --best or a list of values"
            )
        yield f"{sentence}."
        return
    settings = "settings that meet all requirements" if question.constraints else "settings"
    if len(question.objectives) > 1:
        count = len(answer.frontier)
        objectives = " and ".join(map(str, question.objectives))
        yield (
            f"{count:,} of the {settings} {_are(count)} on the Pareto frontier of {objectives}: no other one is better "
            "in one of these objectives and at least as good in the others."
        )
        return
    if question.objectives:
        how = f"Of the {settings} the best by {question.objectives[0]}"
    else:
        how = f"The {question.end} setting" if question.end else "A setting"
        how += " that meets all requirements"
    yield f"{how} is {question.described(best)}{_limit(answer, best)}."
    yield _evidence(answer, best, question.constraints, "There: ")


def _also_meeting(answer: SearchResult) -> Iterator[str]:
    """Yield the other settings that meet all requirements, where nothing was to choose between them."""
    question = answer.question
    if answer.best is None or question.end or question.objectives or not question.constraints:
        return
    others = [n for n, found in sorted(answer.verdicts.items()) if found.verdict == HOLDS and n != answer.best]
    if others:
        is_one_key = len(question.varied) == 1
        settings = ["".join(question.short_values(n).values()) if is_one_key else question.described(n) for n in others]
        more = f" and {len(others) - MAX_ALIKE} more" if len(others) > MAX_ALIKE else ""
        values = "; ".join(settings[:MAX_ALIKE])
        need = question.constraints[0]
        best = f"--best {'max' if need.is_lower_bound else 'min'}:{need.metric}"
        yield f"So {'does' if len(others) == 1 else 'do'} {values}{more}: {best} selects the best of them."


def _limit(answer: SearchResult, best: int) -> str:
    """Return a limit in other units, if one was varied."""
    if not any(vary.key.endswith(".limit") for vary in answer.question.varied):
        return ""
    size = limit_size(answer.question.point(best).plan)
    return f" ({size})" if size else ""


def _limits(answer: SearchResult) -> Iterator[str]:
    """Yield where the limits of the qdiscs come from, if they were compared by name."""
    question = answer.question
    compared = next((vary for vary in question.varied if vary.key == QUEUE), None)
    if compared is None or any(vary.key == KEYS["limit"] for vary in question.varied):
        return
    plans = {label(question.values(number)[QUEUE]): question.point(number).plan for number in sorted(answer.verdicts)}
    yield limit_sentence([(value, plans[label(value)]) for value in compared.values if label(value) in plans])


def _evidence(answer: SearchResult, number: int, constraints: Sequence[Constraint], begin: str) -> str:
    found = answer.summary(number)
    said = ", ".join(measured(need, found[need.metric]) for need in constraints)
    return f"{begin}{said}; {_seeds(answer.runs[number])}." if said else ""


def _next_setting(answer: SearchResult) -> Iterator[str]:
    """Yield why the next setting fails, and which ones further on are undecided."""
    number = answer.before()
    if number is None:
        if answer.best is not None and answer.question.end and answer.question.number(0, 0) == answer.best:
            yield f"It is the {answer.question.end} that was asked about."
        return
    yield _judged(answer, number, "fails" if answer.verdicts[number].verdict == FAILS else "is undecided")
    yield from (_judged(answer, other, "is undecided") for other in answer.doubtful())


def _seeds(runs: Sized) -> str:
    return f"{len(runs)} seed{'' if len(runs) == 1 else 's'}"


def _judged(answer: SearchResult, number: int, verdict: str) -> str:
    """`0.143bdp fails: utilisation 97.5 ± 0.1 % (required: ≥ 98%); 8 seeds.`."""
    constraints = [need for need in answer.question.constraints if need in answer.verdicts[number].unmet]
    value = label(answer.question.values(number)[answer.question.varied[-1].key])
    return _evidence(answer, number, constraints, f"{value} {verdict}: ")


def _others(answer: SearchResult) -> Iterator[str]:
    """The ends of the other rows, and the frontier."""
    question = answer.question
    if len(answer.ends) > 1:
        yield from (f"  {_end(question, row, number)}" for row, number in answer.ends.items())
    if len(question.objectives) > 1:
        yield from (f"  {question.described(number)}" for number in answer.frontier)
        yield _not_run(question, len(answer.verdicts))
    if alike := answer.as_good():
        values = "; ".join(map(question.described, alike[:MAX_ALIKE]))
        more = f" and {len(alike) - MAX_ALIKE} more" if len(alike) > MAX_ALIKE else ""
        yield f"Not clearly worse: {values}{more}."


def _not_run(question: Question, verdicts: int) -> str:
    """Return the justification for settings of a frontier that were not run."""
    settings = question.rows * question.row
    if verdicts == settings:
        return ""
    which = "fails a requirement, or is" if question.constraints else "is"
    return (
        f"{verdicts:,} of {settings:,} settings were run. Each of the others {which} in no objective more than "
        "1 % better than one on the frontier, provided that its metrics lie between those of its neighbours."
    )


def _end(question: Question, row: int, number: int | None) -> str:
    """Return the result of a row: `network.queue = codel: 0.133bdp`."""
    key = question.varied[-1].key
    others = {name: value for name, value in question.short_values(question.number(row, 0)).items() if name != key}
    found = "none" if number is None else label(question.values(number)[key])
    return f"{', '.join(f'{name} = {value}' for name, value in others.items())}: {found}"


def _confirmed(answer: SearchResult) -> Iterator[str]:
    for engine, agrees in (answer.confirmed or {}).items():
        rows = (answer.confirming or {})[engine]
        found, constraints = (
            summary(rows, answer.question.metrics),
            criteria.measured(answer.question.constraints, rows),
        )
        said = [measured(need, found[need.metric]) for need in constraints]
        said += [
            f"{need.metric} is not measured there" for need in answer.question.constraints if need not in constraints
        ]
        yield f"The engine {engine} {CONFIRMED[agrees]}: {', '.join(said)}; {_seeds(rows)}."


def _phase_dependence(answer: SearchResult) -> Iterator[str]:
    """Yield whether the result depends on a coincidence of phases."""
    if answer.phase is None or answer.perturbed is None:
        return
    yield summary_text.phase_sentence(answer.phase)
    if answer.question.constraints and answer.perturbed_met is not True:
        found = summary(answer.perturbed, answer.question.metrics)
        said = ", ".join(measured(need, found[need.metric]) for need in answer.question.constraints)
        how = "fails" if answer.perturbed_met is False else "is undecided"
        yield f"With noise in the hosts the setting {how}: {said}; {_seeds(answer.perturbed)}."


def _left(answer: SearchResult) -> Iterator[str]:
    if any(need.is_default for need in answer.question.constraints):
        yield (
            "Nobody may starve: each group's long-lived flows must get a tenth of their max-min fair share on average "
            "(--allow-starvation lifts that)."
        )
    if not answer.complete:
        yield "The budget was spent before the search ended: the same command resumes it."
    elif answer.verdict not in (HOLDS, NONE):
        yield "Some settings remain undecided: more seeds (--repeats) may decide them."
