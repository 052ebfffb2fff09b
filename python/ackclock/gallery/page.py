"""The pages of the gallery, in Markdown: made of papers' files, entries' tables and READMEs, and of nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ackclock.figures import numbers
from ackclock.gallery.claims import Claim, Paper, Testbed
from ackclock.gallery.entry import Entry
from ackclock.gallery.inequalities import STATES, Cell
from ackclock.gallery.result import QUICK, Judged, Result

MADE = "<!-- Made by `make gallery` from reproductions/: edit those. -->\n\n"

#: Marks of a robustness vector: holds, fails, undetermined.
MARKS: Mapping[bool | None, str] = {True: "✓", False: "✗", None: "?"}

#: A README's link to another entry's; on the site it is the entry's page.
_LINK = re.compile(r"\(\.\./([^/)]+)/README\.md\)")


def entry_page(
    entry: Entry,
    result: Result,
    *drawn: str,
    switched: Result | None = None,
    paper: Paper | None = None,
    claims: Sequence[Claim] = (),
) -> str:
    """An entry's page: its claims, the figures, the rows beside the printed numbers, where they are, the README.

    `switched` are the rows of its ablations.
    """
    look = "\n\nA preview at a reduced scale, whose values the documentation does not quote." * (result.scale == QUICK)
    sources = [(claim.what, claim.published, claim.where, claim.how) for claim in entry.published.values()]
    of = f" · [{paper.short}]({paper.id}.md)" if paper else ""
    judged = [f"- {link(claim)}: **{claim.state.name}**. “{claim.quote}”" for claim in claims]
    readings = [(reading.name, reading.description) for reading in entry.readings.every]
    return "\n".join((
        f"{MADE}# {entry.title}",
        "",
        f"`ackclock reproduce {entry.id}`{of}{look}",
        "",
        *([*judged, ""] if judged else []),
        *([_table(("interpretation", "what the paper's wording allows"), readings)] if readings else []),
        *(["\n\n".join(f"![{entry.title}]({figure})" for figure in drawn), ""] if drawn else []),
        _rows(entry, result) if result.rows else f"{UNRUN}\n",
        *([_mechanisms(entry, result, switched)] if switched and switched.rows else []),
        "## Published values",
        "",
        _table(("what", "published", "where", "how it was obtained"), sources),
        _LINK.sub(r"(\1.md)", entry.text),
    ))  # fmt: skip


#: Text on the page of an entry without a result.
UNRUN = "The rule exists; the entry has not been run at full scale yet."


def _rows(entry: Entry, result: Result) -> str:
    """The rows with their reasons; a column of interpretations where they are of several."""
    head = ("what", "published", "engine", "reproduced (95 % interval)", "verdict", "why: it is")
    if not result.readings:
        return _table(head, [(*cells(entry, row), row.why) for row in result.rows])
    rows = [(row.reading or "each", *cells(entry, row), row.why) for row in result.rows]
    return _table(("interpretation", *head), rows)


def _mechanisms(entry: Entry, result: Result, switched: Result) -> str:
    """Each mechanism that was run: what is said of it, and what its rows were before and are with the change."""
    head = ("what", "published", "engine", "as it is", "with the change", "verdict")
    parts = ["## Mechanisms, tested by ablation", ""]
    for each in entry.mechanisms:
        if rows := [row for row in switched.rows if row.reading == each.name]:
            on = f", read as: {each.reading}" if each.reading else ""
            lines = [moved(entry, result, each.reading, row) for row in rows]
            parts += [f"**{each.name}**{on}. {each.description}", "", _table(head, lines)]
    return "\n".join(parts)


def moved(entry: Entry, result: Result, reading: str, row: Judged) -> tuple[str, ...]:
    """A row of a switched run beside that of the run as it is: what, published, engine, both values, both verdicts."""
    what, published, engine, value, now = cells(entry, row)
    engines = set(row.engine.split(", "))  # a mechanism may be run by some of those that a row sets beside each other
    found = [
        one
        for one in result.rows
        if (one.claim, one.at) == (row.claim, row.at)
        and engines <= set(one.engine.split(", "))
        and one.reading in ("", reading)
    ]
    if not found:
        return what, published, engine, numbers.NOTHING, value, now
    _, _, _, before, was = cells(entry, found[0])
    return what, published, engine, before, value, now if now == was else f"{was} → {now}"


def cells(entry: Entry, row: Judged) -> tuple[str, str, str, str, str]:
    """Return claim, published value, engine, reproduced value with its interval, and verdict."""
    claim = entry.published[row.claim]
    mean, interval = numbers.interval(row.reproduced, row.ci95_low, row.ci95_high, claim.unit)
    what = ", ".join(filter(None, (claim.what, row.at)))
    value = f"{mean} ({interval})" if interval != numbers.NOTHING else mean
    return what, claim.published, row.engine, value, verdict(row)


def verdict(row: Judged) -> str:
    """The verdict's word, in parentheses where it does not count."""
    return row.verdict if row.counts else f"({row.verdict})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)


def link(claim: Claim) -> str:
    """A link to a claim on its paper's page."""
    return f"[{claim.full_id}]({claim.paper.id}.md#{claim.id})"


def paper_page(paper: Paper, figures: Mapping[str, str]) -> str:
    """A paper's page: the states of its claims, its testbeds with their joint readings, each claim, its entries.

    `figures` are the entries' figures by id; each is shown with the first claim that its entry judges.
    """
    left = dict(figures)
    year = "" if str(paper.year) in paper.published else f", {paper.year}"
    lines = [
        (f"[{claim.id}](#{claim.id})", str(claim.state), _short(claim.translation or claim.quote))
        for claim in paper.claims
    ]
    entries = [(f"[{entry.id}]({entry.id}.md)", entry.title) for entry in paper.all_entries]
    return "\n".join((
        f"{MADE}# {paper.short}: {paper.title}",
        "",
        f"{', '.join(paper.authors)}: *{paper.title}*. {paper.published}{year}.",
        "",
        f"`ackclock reproduce {paper.id}` prints this page's states; with `--run` it runs the entries.",
        "",
        _table(("claim", "state", "in the paper's words"), lines),
        *(_testbed(paper, each) for each in paper.testbeds),
        "## Claims",
        "",
        *(_claim(claim, left) for claim in paper.claims),
        "## Entries",
        "",
        _table(("id", "what is measured"), entries),
    ))  # fmt: skip


def _testbed(paper: Paper, testbed: Testbed) -> str:
    """A testbed: how its joint reading was chosen, and what does not fit it."""
    chosen = paper.joint(testbed)
    head = (
        "reading",
        "in entries without it",
        "support in the text",
        "why",
        *(["residual"] if chosen.residuals else []),
    )
    support = ("allowed", "implied", "stated")
    lines = [
        (
            f"**{each.name}**" if each is chosen.reading else each.name,
            ", ".join(each.otherwise),
            support[each.support],
            each.because,
            *(
                [f"{chosen.residuals[each.name]:.3f}" if each.name in chosen.residuals else ""]
                if chosen.residuals
                else []
            ),
        )
        for each in testbed.readings
    ]
    equals = sum(each.support == chosen.reading.support for each in testbed.readings)
    why = (
        f"the likeliest of those that the text supports most, over {chosen.rows} printed numbers"
        if chosen.residuals
        else "the text supports it most"
        if equals == 1
        else "the first of those that the text supports most, between which no printed number decides"
    )
    against = [
        f"{link(claim)} ({claim.state.why})"
        for claim in paper.claims
        if claim.testbed == testbed and "holds only if read as" in claim.state.why
    ]
    rest = f"Incompatible with it: {'; '.join(against)}.\n" if against else ""
    entries = ", ".join(f"[{name}]({name}.md)" for name in testbed.entries)
    joint = f"Joint reading: **{chosen.reading.name}**; {why}."
    return f"## {testbed.name}\n\n{entries}. {joint}\n\n{_table(head, lines)}\n{rest}"


def _number(residual: float | None) -> str:
    return "" if residual is None else f"{residual:.3f}"


def _claim(claim: Claim, figures: dict[str, str]) -> str:
    """A claim: state, quote, inequality, robustness vector, mechanisms and figure."""
    state = claim.state
    translated = f" ({claim.translation})" if claim.translation else ""
    parts = [f"### {claim.id}", "", f"**{state}**", "", f"> “{claim.quote}”{translated}", ""]
    parts += [f"Section {claim.section}. {claim.scope}".strip(), ""]
    if claim.holds:
        judged = ", ".join(f"[{name}]({name}.md)" for name in claim.entries)
        parts += [f"Judged by {judged}: `{claim.holds}`", "", vector(claim.cells)]
    parts += [f"- Turned by *{name}*\n" for name in state.mechanisms]
    parts += [f"- Turned in part by *{name}*\n" for name in claim.partial_mechanisms]
    parts += [f"![{claim.id}]({figures.pop(name)})\n" for name in claim.entries if name in figures]
    return "\n".join(parts)


def vector(cells: Sequence[Cell]) -> str:
    """The robustness vector: a mark for each reading, noise and scale (rows) and engine (columns).

    A single run is marked by °, since it has no interval; the cases that fail or are undetermined follow.
    """
    if not cells:
        return "No recorded result has all its rows.\n"
    labels = list(dict.fromkeys(cell.label for cell in cells))
    keys = dict.fromkeys((cell.reading, cell.noise, cell.scale) for cell in cells)
    lines = []
    for reading, noise, scale in keys:
        found = {
            cell.label: cell for cell in cells if (cell.reading, cell.noise, cell.scale) == (reading, noise, scale)
        }
        marks = [mark(found[label]) if label in found else "" for label in labels]
        lines.append((reading or "each", "yes" if noise else "no", scale or "the entry's", *marks))
    return _table(("reading", "host noise", "scale", *labels), lines)


def mark(cell: Cell) -> str:
    """`✓`, `✗ (0.1 BDP)` or `?`, with ° for a single run."""
    outcome = cell.outcome
    some = outcome.failing if cell.truth is False else outcome.undetermined if cell.truth is None else ()
    where = f" ({', '.join(dict.fromkeys(some))})" if some else ""
    return f"{MARKS[cell.truth]}{'°' if cell.single else ''}{where}"


def index_page(papers: Sequence[Paper], introduction: str, figures: Mapping[str, str]) -> str:
    """The overview: papers with thumbnails and the numbers of their claims by state, then all authors."""
    lines = []
    for paper in papers:
        counts = Counter(claim.state.name for claim in paper.claims)
        shown = next((figures[name] for claim in paper.claims for name in claim.entries if name in figures), "")
        image = f'[<img src="{shown}" alt="" width="160">]({paper.id}.md)' if shown else ""
        about = f"[{paper.short}]({paper.id}.md): {paper.title}<br>`{paper.id}`"
        lines.append((image, about, *(str(counts[state] or "") for state in STATES)))
    total = Counter(claim.state.name for paper in papers for claim in paper.claims)
    lines.append(("", "all", *(str(total[state]) for state in STATES)))
    authors = sorted({(name.split()[-1], name) for paper in papers for name in paper.authors})
    by_author = [
        (name, ", ".join(f"[{paper.short}]({paper.id}.md)" for paper in papers if name in paper.authors))
        for _, name in authors
    ]
    table = _table(("", "paper", *STATES), lines)
    return f"{MADE}{introduction}\n{table}\n## Authors\n\n{_table(('author', 'papers'), by_author)}"


def audit_page(papers: Sequence[Paper]) -> str:
    """The states beside those that readers gave by hand, with a sentence for each difference."""
    audited = [claim for paper in papers for claim in paper.claims if claim.audit]
    lines = [(link(claim), str(claim.state), claim.audit, claim.difference) for claim in audited]
    same = sum(claim.audit == claim.state.name for claim in audited)
    head = ("claim", "our state, by the rule", "audit, by hand", "why they differ")
    return (
        f"{MADE}# Claims beside an audit by hand\n\nA reader of the studies gave these claims a state by hand. Ours "
        f"follow from the recorded results by the [rule](index.md#states); {same} of {len(audited)} are the "
        f"same.\n\n{_table(head, lines)}"
    )


def _short(quote: str) -> str:
    return quote if len(quote) <= QUOTE else f"{quote[:QUOTE].rsplit(' ', 1)[0]} …"


#: Characters of a quote in a table.
QUOTE = 110
