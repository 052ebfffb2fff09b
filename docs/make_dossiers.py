"""Makes the pages in docs/dossiers: what `ackclock evaluate` finds of known algorithms.

    ackclock evaluate bbr --out results/bbr
    python docs/make_dossiers.py results/bbr [FOLDER…]

takes the verdicts of these evaluations, with their values, into `docs/dossiers/NAME.json`; without a folder the pages
are written from what is there. The file keeps what a page shows: no runs, and the excess over the closest reference
only. Of an evaluation by two engines (`--engine packet,linux`) their agreement is kept, in `agreement.json`.
`docs/dossiers/dossiers.toml` has for each algorithm what is known of it, with claims about the page's tables
(`claims.py`), and the scenarios whose values are shown in full.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import claims

from ackclock.evaluate import NOT_COVERED, SECTIONS, dossier
from ackclock.evaluate.run import NOT_SELECTED, QUICK_SIZES, Evaluation, Request
from ackclock.evaluate.verdicts import NO_WORSE, WORSE, Finding, Interval
from ackclock.figures import numbers
from ackclock.metrics import METRICS

FOLDER = Path(__file__).resolve().parent / "dossiers"
ABOUT, AGREEMENT = FOLDER / "dossiers.toml", FOLDER / "agreement.json"

#: Significant digits that are kept.
DIGITS = 4

#: The yardsticks of all dossiers here.
REFERENCES = ("cubic", "reno")

INTRODUCTION = """<!-- Made by docs/make_dossiers.py from dossiers.toml: edit these. -->

# Dossiers of known algorithms

What does [`ackclock evaluate`](../guides/evaluate.md) find of algorithms of which much is known? Each page has the
verdicts on one by the criteria of RFC 9743, with the published results beside them, and says what did not come out.
`no_backoff` is a [prototype in Python](no_backoff.py) that never reduces its window: what the RFC is there to keep
out. All of it is simulated, by the packet engine, but for the verdicts in the kernel.

## Harm to others

More harmful than CUBIC and than Reno in the same place, of all comparisons of the section.

"""

PERFORMANCE = """## Performance

Comparisons in which goodput, completion times, efficiency or the smallest share are worse than with CUBIC and with Reno
in the same place, of all.

"""

METHOD = """\
A comparison is of one metric at one point of a scenario; verdicts rest on intervals over seeds, each of which is wrong
with a probability of at most 1 %. CUBIC is compared with Reno and with itself, Reno likewise: no verdict on them can be
*more harmful*. Counts of different sections do not add up to a score: a section with many points is not more important.
"""

IN_THE_KERNEL = """## In the kernel

Verdicts of Linux in a guest that are those of the packet engine, and that are others, in evaluations by both
(`--engine packet,linux --quick --section N`). Verdicts that are undecided in one of them are neither.

"""


@dataclass(frozen=True)
class Record:
    """A kept evaluation: its name, how it ran, and its findings with the excess over the closest reference."""

    name: str
    version: str
    candidate: str
    engine: str
    sizes: tuple[int, ...]
    titles: Mapping[str, str]
    not_covered: Mapping[str, str]
    unsupported: Mapping[str, str]
    findings: Sequence[Finding]

    @property
    def is_quick(self) -> bool:
        """Return True for one of `--quick`."""
        return self.sizes == QUICK_SIZES


def keep(folder: Path) -> None:
    """Take over the findings of an evaluation, or the agreement of its engines. Exits if it has other yardsticks."""
    found = json.loads((folder / dossier.JSON).read_text(encoding="utf-8"))
    if set(found["references"]) != set(REFERENCES):
        raise SystemExit(f"{folder}: expected an evaluation against {' and '.join(REFERENCES)}")
    if len(found["engines"]) > 1:
        keep_agreement(found)
    else:
        keep_findings(folder.name, found)


def keep_findings(name: str, found: Mapping[str, Any]) -> None:
    """Take over the findings by one engine, a line each."""
    about = {
        "ackclock": found["ackclock"],
        "candidate": found["candidate"],
        "engine": found["engines"][0],
        "sizes": found["seeds"]["looks"],
        "titles": {case["name"]: case["title"] for case in found["cases"]},
        "not_covered": {section: reason for section, reason in found["not_covered"].items() if reason != NOT_SELECTED},
        "unsupported": {each["case"]: each["reason"] for each in found["unsupported"]},
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in about.items()]
    rows = ",\n".join(json.dumps(_kept(finding), ensure_ascii=False) for finding in found["findings"])
    text = "{\n" + ",\n".join(lines) + ',\n"findings": [\n' + rows + "\n]\n}\n"
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def keep_agreement(found: Mapping[str, Any]) -> None:
    """Take over how many verdicts of each section two engines have in common."""
    request = Request(found["candidate"], engines=tuple(found["engines"]))
    findings = [Finding.from_dict(each) for each in found["findings"]]
    rows = dossier.agreement(Evaluation(request, [], findings, {}, {}, Path()))
    kept = json.loads(AGREEMENT.read_text(encoding="utf-8")) if AGREEMENT.is_file() else {}
    kept.setdefault(request.name, {}).update({section: [same, other] for section, _, same, other in rows})
    AGREEMENT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _kept(finding: Mapping[str, Any]) -> list[Any]:
    excess = min(finding["excess"].values(), key=lambda each: each["mean"], default=None)
    values = {name: _rounded(value) for name, value in finding["values"].items()}
    ends = excess and [_rounded(excess["mean"]), _rounded(excess["low"]), _rounded(excess["high"]), excess["n"]]
    keys = ("engine", "case", "section", "point", "kind", "metric", "verdict")
    return [*(finding[key] for key in keys), values, ends]


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def read(name: str) -> Record:
    """Return a kept evaluation."""
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    findings = [
        Finding(
            engine, case, section, point, kind, metric, verdict, values,
            excess={"closest": Interval(*ends)} if ends else {},
            by_seed={},
        )
        for engine, case, section, point, kind, metric, verdict, values, ends in found["findings"]
    ]  # fmt: skip
    return Record(
        name, found["ackclock"], found["candidate"], found["engine"], tuple(found["sizes"]), found["titles"],
        found["not_covered"], found["unsupported"], findings,
    )  # fmt: skip


def index_page(records: Sequence[Record]) -> str:
    """Return the page that compares the algorithms by section."""
    heads = ["section", "criterion", *(f"[{record.name}]({record.name}.md)" for record in records)]
    text = INTRODUCTION
    for kind, words in (("harm", ""), ("performance", PERFORMANCE)):
        rows = [
            [section, title, *counts]
            for section, title in SECTIONS.items()
            if any(counts := [_count(record.findings, section, kind) for record in records])
        ]
        text += words + table(heads, rows) + "\n"
    scopes = [
        f"{name} ({', '.join(f'`{record.name}`' for record in records if record.is_quick == quick)})"
        for name, quick in (("all scenarios", False), ("those of `--quick` only", True))
        if any(record.is_quick == quick for record in records)
    ]
    text += f"{METHOD}\nScenarios: {'; '.join(scopes)}.\n"
    if AGREEMENT.is_file():
        kept = json.loads(AGREEMENT.read_text(encoding="utf-8"))
        rows = [[name, section, *counts] for name, some in kept.items() for section, counts in sorted(some.items())]
        text += "\n" + IN_THE_KERNEL + table(("algorithm", "section", "same verdict", "other verdict"), rows)
    return text


def _count(findings: Iterable[Finding], section: str, kind: str) -> str:
    own = [f.verdict for f in findings if (f.section, f.kind) == (section, kind)]
    return f"{own.count(WORSE)} of {len(own)}" if own else ""


def page(record: Record, about: Mapping[str, Any]) -> str:
    """Return the page of an algorithm."""
    return "\n".join(_page(record, about))


def _page(record: Record, about: Mapping[str, Any]) -> Iterator[str]:
    sizes = ", ".join(map(str, record.sizes))
    scope = "the scenarios of `--quick`" if record.is_quick else "all scenarios"
    yield "<!-- Made by docs/make_dossiers.py from dossiers.toml: edit these. -->\n"
    yield f"# {about['title']}\n"
    yield f"{about['summary'].strip()}\n"
    options = [
        *([f"--engine {record.engine}"] if record.engine != "packet" else []),
        *([f"--module {about['module']}"] if "module" in about else []),
        *(["--quick"] if record.is_quick else []),
    ]
    command = " ".join(["ackclock evaluate", record.candidate, *options])
    yield f"`{command}`, ackclock {record.version}: {scope} with {sizes} seeds,"
    yield f"until a verdict is decided. The [values and verdicts]({record.name}.json) are kept; the [index](index.md)"
    yield "compares the algorithms.\n"
    yield from ["## Scorecard\n", scorecard(record)]
    if "known" in about:
        yield from ["## Known results\n", about["known"].strip() + "\n"]
    for shown in about.get("shown", ()):
        if shown["case"] not in record.titles:  # not in the short evaluation
            continue
        yield from [f"### {record.titles[shown['case']]}\n", values_table(record, shown["case"], shown["metric"])]
    is_clean = all(f.verdict == NO_WORSE for f in record.findings)
    yield from ["## Findings\n", "None." if is_clean else "Without those that are no more harmful and no worse.", ""]
    for case, title in record.titles.items():
        own = [f for f in record.findings if f.case == case and f.verdict != NO_WORSE]
        if own:
            yield from [f"### {own[0].section}: {title}\n", findings_table(record, own)]
    yield "## Not covered\n"
    for section in record.not_covered:
        reason = NOT_COVERED.get(section, "its scenarios are newer than this evaluation")
        yield f"- {section} {SECTIONS[section]}: {reason}"
    yield from (f"- {record.titles[case]}: {reason}" for case, reason in record.unsupported.items())
    yield ""


def scorecard(record: Record) -> str:
    """Return how many verdicts each section has."""
    rows = []
    for section, title in SECTIONS.items():
        own = [f for f in record.findings if f.section == section]
        harm = [f.verdict for f in own if f.kind == "harm"]
        if own:
            counts = [str(harm.count(verdict)) if harm else "" for verdict in dossier.VERDICTS]
            rows.append([section, title, *counts, _count(own, section, "performance")])
    return table(("section", "criterion", *dossier.VERDICTS, "worse performance"), rows)


def values_table(record: Record, case: str, metric: str) -> str:
    """Return the values of a metric at all points of a scenario, whatever the verdict."""
    own = [f for f in record.findings if (f.case, f.metric) == (case, metric)]
    return findings_table(record, own)


def findings_table(record: Record, findings: Sequence[Finding]) -> str:
    """Return the findings with the values of the candidate, the references, and the victim by itself."""
    names = [
        name
        for name in ("candidate", *REFERENCES, "alone")
        if name != record.candidate and any(name in f.values for f in findings)
    ]
    heads = [{"candidate": record.name, "alone": "victim alone"}.get(name, name) for name in names]
    rows = [
        [
            dossier.point_text(f),
            METRICS[f.metric].label,
            *(_value(f, name) for name in names),
            dossier.excess_text(f),
            f.sentence,
        ]
        for f in findings
    ]
    return table(("point", "metric", *heads, "excess of harm", "verdict"), rows)


def _value(finding: Finding, name: str) -> str:
    value = finding.values.get(name)
    return "" if value is None else numbers.value(value, METRICS[finding.metric].unit)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Return every page by its file name."""
    about = tomllib.loads(ABOUT.read_text(encoding="utf-8"))
    records = [read(name) for name in about if (FOLDER / f"{name}.json").is_file()]
    made = {f"{record.name}.md": page(record, about[record.name]) for record in records}
    return {**made, "index.md": index_page([record for record in records if "-" not in record.name])}


def main(folders: Iterable[Path]) -> None:
    """Take the evaluations over, then write the pages. Exits with status 1 if a sentence of them is not true."""
    for folder in folders:
        keep(folder)
    made = pages()
    for name, text in made.items():  # all of them first: claims of one page are about another
        (FOLDER / name).write_text(text, encoding="utf-8")
    if wrong := [f"not true in docs/dossiers/{name}: {each}" for name in made for each in claims.untrue(made[name])]:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(map(Path, sys.argv[1:]))
