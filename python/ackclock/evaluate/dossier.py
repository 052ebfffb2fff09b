"""The dossier of an evaluation: as JSON for programs and later comparisons, as Markdown and HTML for people."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from ackclock import _core, algorithms
from ackclock.dataset import checksums, folders, manifests, result_kind
from ackclock.dataset.result_kind import Kind
from ackclock.engines.engine import circumstances
from ackclock.errors import InputError
from ackclock.evaluate import SECTIONS
from ackclock.evaluate.run import Evaluation, Request, case_folder
from ackclock.evaluate.verdicts import MARGIN, NO_WORSE, RISK, UNDECIDED, WORSE, Change, Finding, Interval
from ackclock.figures import numbers
from ackclock.metrics import METRICS
from ackclock.repr_format import counted
from ackclock.system import files

#: The files of a dossier.
JSON, MARKDOWN, HTML = "dossier.json", "dossier.md", "dossier.html"

#: Heads of the table of `agreement`.
AGREEMENT = ("section", "engines", "same verdict", "other verdict")

#: Longest dossier that is compared with, in bytes.
LONGEST = 1 << 28

#: Sections that the authors of an algorithm answer, and what the answers are about.
QUESTIONS = {
    "5.3.1": (
        "Differences from the congestion control principles",
        (
            "How does it deviate from RFC 2914 and RFC 7141, and why?",
            "What limits what it sends before the first feedback?",
        ),
    ),
    "5.3.2": (
        "Incremental deployment",
        (
            "Does it need changes at the receiver or in the network, or the sender alone?",
            "Is it meant for the whole Internet? If not, what keeps it within its environment?",
            "What is known of its operation with middleboxes: proxies, policers, home routers?",
        ),
    ),
}


#: Verdicts on harm, as the columns of the scorecard.
VERDICTS = (WORSE, NO_WORSE, UNDECIDED)


class Score(NamedTuple):
    """The verdicts of a section by kind: how many of each, and the worst finding of harm."""

    engine: str
    section: str
    counts: Mapping[tuple[str, str], int]
    worst: Finding | None


def check_folder(folder: Path, *, restart: bool = False) -> None:
    """Mark a folder as an evaluation's that is not finished, before anything runs; one that is finished stays so.

    With `restart` that one is marked as well, and its dossier is removed. Raises `InputError` for a folder that holds
    something else.
    """
    result_kind.check(folder, Kind.EVALUATION)
    with folders.write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if restart or not (folder / result_kind.MANIFEST).is_file():
            _write_manifest(folder, {"ackclock": _core.version, "evaluation": {}}, ())
            for name in (JSON, MARKDOWN, HTML):
                (folder / name).unlink(missing_ok=True)


def write(evaluation: Evaluation, folder: Path, changes: Sequence[Change] | None, page: str) -> list[Path]:
    """Write the dossier into the folder of its runs, with the page as HTML; return the paths."""
    content = as_dict(evaluation, changes)
    texts = {
        JSON: json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        MARKDOWN: "\n".join(markdown(evaluation, changes)) + "\n",
        HTML: page,
    }
    _write_manifest(folder, {"ackclock": _core.version, "evaluation": {}}, ())  # for as long as parts are of another
    for name, text in texts.items():
        _put(folder / name, text.encode("utf-8", "replace"))
    about = {"candidate": evaluation.request.name, "engines": list(evaluation.request.engines)}
    document = {"ackclock": _core.version, "evaluation": about, **circumstances(evaluation.request.command)}
    _write_manifest(folder, document, texts)
    return [folder / name for name in (HTML, MARKDOWN, JSON)]


def _write_manifest(folder: Path, about: Mapping[str, Any], names: Iterable[str]) -> None:
    with folders.write_errors(folder):
        content = manifests.content(about, checksums.of_files(folder, names))
    _put(folder / result_kind.MANIFEST, content)


def _put(path: Path, content: bytes) -> None:
    folders.atomic_write(path, lambda new: new.write_bytes(content))


def read_findings(path: Path) -> list[Finding]:
    """Read the findings of a `dossier.json`. Raises `InputError` for anything else."""
    try:
        content = json.loads(files.read_bytes(path, LONGEST))
        return [Finding.from_dict(found) for found in content["findings"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{path}: found no dossier; expected the {JSON} of an evaluation") from None


def as_dict(evaluation: Evaluation, changes: Sequence[Change] | None = None) -> dict[str, Any]:
    """For JSON: what `ackclock evaluate --json` prints."""
    request = evaluation.request
    return {
        "ackclock": _core.version,
        "candidate": request.candidate,
        "references": list(request.references),
        "engines": list(request.engines),
        "seeds": {"first": request.first_seed, "looks": list(request.sizes)},
        "margin": MARGIN,
        "risk": RISK,
        "scorecard": [
            {
                "engine": score.engine,
                "section": score.section,
                "title": SECTIONS[score.section],
                **{f"{kind}: {verdict}": count for (kind, verdict), count in score.counts.items()},
            }
            for score in scorecard(evaluation)
        ],
        "findings": [finding.as_dict() for finding in evaluation.findings],
        "cases": [
            {"name": case.name, "section": case.judged.section, "title": case.title, "why": case.judged.why}
            for case in evaluation.cases
        ],
        "not_covered": evaluation.not_covered,
        "unsupported": [
            {"engine": engine, "case": name, "reason": reason}
            for (engine, name), reason in evaluation.unsupported.items()
        ],
        **({} if changes is None else {"changes": [_change(each) for each in changes]}),
    }


def _change(change: Change) -> dict[str, Any]:
    found = change.difference
    return {
        "case": change.after.case,
        "point": change.after.point,
        "metric": change.after.metric,
        "before": change.before.verdict,
        "after": change.after.verdict,
        "difference": None
        if found is None
        else {"mean": found.mean, "low": found.low, "high": found.high, "n": found.n},
        "significant": change.is_significant,
    }


def scorecard(evaluation: Evaluation) -> list[Score]:
    """Return a row for each engine and section with findings."""
    rows = []
    for engine in evaluation.request.engines:
        for section in SECTIONS:
            own = [f for f in evaluation.findings if f.engine == engine and f.section == section]
            counts = {
                (kind, verdict): sum(f.kind == kind and f.verdict == verdict for f in own)
                for kind in ("harm", "performance")
                for verdict in (WORSE, NO_WORSE, UNDECIDED)
            }
            bad = [f for f in own if f.verdict == WORSE and f.kind == "harm" and f.smallest]
            worst = max(bad, key=lambda f: f.smallest.mean if f.smallest else 0.0, default=None)
            rows += [Score(engine, section, counts, worst)] if own else []
    return rows


def agreement(evaluation: Evaluation) -> list[list[str]]:
    """Return for each section and further engine how many verdicts are those of the first engine, and how many differ.

    Verdicts that are undecided in one of them are neither.
    """
    first, *others = evaluation.request.engines
    verdicts = {(f.engine, f.key[1:]): f for f in evaluation.findings}
    rows = []
    for other in others:
        for section in SECTIONS:
            own = [f for f in evaluation.findings if f.engine == other and f.section == section]
            pairs = [(f.verdict, verdicts[first, f.key[1:]].verdict) for f in own if (first, f.key[1:]) in verdicts]
            same = sum(one == two != UNDECIDED for one, two in pairs)
            differ = sum(one != two and UNDECIDED not in (one, two) for one, two in pairs)
            rows += [[section, f"{other} and {first}", str(same), str(differ)]] if pairs else []
    return rows


def summary(evaluation: Evaluation) -> str:
    """Return the outcome: in how many sections the candidate is more harmful, and the worst of them."""
    scores = scorecard(evaluation)
    judged = [score for score in scores if any(score.counts["harm", verdict] for verdict in VERDICTS)]
    references = " and ".join(evaluation.request.references)
    if not judged:
        return f"No comparison of harm with {references} was made."
    harmful = [score for score in judged if score.counts["harm", WORSE]]
    undecided = sum(bool(score.counts["harm", UNDECIDED]) for score in judged if score not in harmful)
    counts = f"{evaluation.request.name} is more harmful than {references} in {len(harmful)} of {_sections(judged)}"
    open_ones = f", and undecided in {undecided}" if undecided else ""
    worst = max(
        (score.worst for score in harmful if score.worst),
        key=lambda finding: finding.smallest.mean if finding.smallest else 0.0,
        default=None,
    )
    if worst is None:
        return f"{counts}{open_ones}."
    what = f"{worst.section} {SECTIONS[worst.section]}, {METRICS[worst.metric].label}"
    return f"{counts}{open_ones}. The worst: {what}, excess of harm {excess_text(worst)}."


def _sections(scores: Sequence[Score]) -> str:
    return counted(len(scores), "section") + (" and engines" if len({score.engine for score in scores}) > 1 else "")


def method(request: Request) -> str:
    """Return how verdicts are made, in two sentences."""
    looks = ", ".join(map(str, request.sizes))
    return (
        f"A verdict compares the candidate with {' and '.join(request.references)} in the same place and with the "
        f"same seeds ({looks} of them, until it is decided): more harmful is more than {MARGIN:.0%} of harm in excess "
        f"of every reference, no more harmful is less than that in excess of one. Each verdict is wrong with a "
        f"probability of at most {RISK:.0%}; the rate is that of a single verdict, not of all together."
    )


def sentence(finding: Finding, request: Request) -> str:
    """Return what a finding rests on: the values of the metric, and the excess."""
    unit = METRICS[finding.metric].unit
    names = {"candidate": request.name, "alone": "alone"}
    values = [
        f"{numbers.value(v, unit) if v is not None else 'no value'} with {names.get(k, k)}"
        for k, v in finding.values.items()
    ]
    text = ", ".join(values).replace("with alone", "alone")
    return f"{METRICS[finding.metric].label}: {text}"


def excess_text(finding: Finding) -> str:
    """Return the excess over the closest reference with its interval, in points of a hundred."""
    found = finding.smallest
    if found is None:
        return numbers.NOTHING
    return _interval_text(found)


def point_text(finding: Finding) -> str:
    """Return the swept values of a finding."""
    return ", ".join(f"{key} {value}" for key, value in finding.point.items())


def markdown(evaluation: Evaluation, changes: Sequence[Change] | None = None) -> Iterator[str]:
    """Yield the lines of the dossier in Markdown."""
    request = evaluation.request
    yield from [f"# {escaped(request.name)} by RFC 9743", "", summary(evaluation), "", method(request), ""]
    yield from _table(
        ("section", "criterion", "engine", WORSE, NO_WORSE, UNDECIDED, "worse performance"),
        ([score.section, SECTIONS[score.section], score.engine, *cells(score)] for score in scorecard(evaluation)),
    )
    if rows := agreement(evaluation):
        yield from ["## Agreement of the engines", ""]
        yield from _table(AGREEMENT, rows)
    if changes is not None:
        yield from ["## Changes", ""]
        yield from _changes(changes)
    yield from ["## Findings", ""]
    for case in evaluation.cases:
        own = [finding for finding in evaluation.findings if finding.case == case.name]
        if not own:
            continue
        yield from [f"### {case.judged.section}: {escaped(case.title)}", "", escaped(case.judged.why), ""]
        place = case_folder(Path(), own[0].engine, case).as_posix()
        command = f"ackclock sweep {shlex.quote(f'{place}/scenario.toml')}"
        yield from [f"Runs: [{escaped(place)}]({quote(place)}), {_code(command)}", ""]
        yield from _table(
            ("point", "values", "excess", "n", "verdict"),
            (
                [point_text(f), sentence(f, request), excess_text(f), f.smallest.n if f.smallest else 0, f.sentence]
                for f in own
            ),
        )
    yield from ["## Not covered", ""]
    yield from [f"- {escaped(line)}" for line in not_covered(evaluation)]
    for section, (title, lines) in deployment(request).items():
        yield from ["", f"## {section} {title}", "", *lines]


def not_covered(evaluation: Evaluation) -> list[str]:
    """Return a line for each section without a finding, and for each scenario that an engine cannot run."""
    sections = [f"{section} {SECTIONS[section]}: {reason}" for section, reason in evaluation.not_covered.items()]
    return sections + [f"{name}: {reason}" for (_, name), reason in evaluation.unsupported.items()]


def cells(score: Score) -> list[str]:
    """Return the counts of a row of the scorecard."""
    of_harm = [str(score.counts["harm", verdict] or "") for verdict in (WORSE, NO_WORSE, UNDECIDED)]
    total = sum(count for (kind, _), count in score.counts.items() if kind == "performance")
    return [*of_harm, f"{score.counts['performance', WORSE]} of {total}" if total else ""]


def _changes(changes: Sequence[Change]) -> Iterator[str]:
    if not changes:
        yield from ["Nothing changed significantly.", ""]
        return
    yield from _table(
        ("scenario", "point", "metric", "before", "after", "change of the excess"),
        (
            [c.after.case, point_text(c.after), c.after.metric, c.before.sentence, c.after.sentence, change_text(c)]
            for c in changes
        ),
    )


def change_text(change: Change) -> str:
    """Return the difference of the excess with its interval."""
    return numbers.NOTHING if change.difference is None else _interval_text(change.difference)


def _interval_text(found: Interval) -> str:
    ends = "" if found.low is None or found.high is None else f" ({_points(found.low)} to {_points(found.high)})"
    return f"{_points(found.mean)} %{ends}"


def _points(share: float) -> str:
    """Return a share in hundredths, with its sign."""
    return f"{100 * share:+.0f}".replace("-", "−") if round(100 * share) else "0"


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(_cell(str(cell)) for cell in row)} |"
    yield ""


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line: neither marks nor links, HTML, lists or headings."""
    return re.sub(r"^(\d*)([-+=]|(?<=\d)[.)](?!\S))", r"\1\\\2", _cell(text))


def _cell(text: str) -> str:
    """Return text that Markdown shows as it is within a line or the cell of a table."""
    return re.sub(r"[\\`*\[\]<>|&~#]|(?<!\w)_|_(?!\w)", r"\\\g<0>", " ".join(text.split()))


def _code(text: str) -> str:
    """Return text as code, between more marks than it has in a row."""
    mark = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{mark}{text}{mark}" if len(mark) == 1 else f"{mark} {text} {mark}"


def deployment(request: Request) -> dict[str, tuple[str, list[str]]]:
    """Return the sections that the authors answer: what the algorithm's spec has, and what is left to them."""
    kind = request.candidate.get("kind") if isinstance(request.candidate, Mapping) else request.candidate
    found = algorithms.spec("congestion", str(kind))
    facts = [f"- {found.summary.strip()}", *(f"- Deviation from its references: {text}" for text in found.deviations)]
    facts += [f"- Reference: {reference.title}" for reference in found.references]
    own = {"5.3.1": facts, "5.3.2": [f"- In Linux: {'yes' if found.linux else 'no'}, by its spec."]}
    return {
        section: (title, [*own[section], *(f"- {question} *To be answered by the authors.*" for question in questions)])
        for section, (title, questions) in QUESTIONS.items()
    }
