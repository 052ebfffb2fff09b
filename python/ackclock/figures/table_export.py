"""Export a sweep's points as a table: LaTeX (`booktabs`), Markdown, or CSV with numbers in SI units.

In LaTeX and Markdown a column has one unit, that of its greatest mean, and as many digits as its intervals bear.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from typing import Any

from ackclock.errors import InputError
from ackclock.figures import numbers, sweep_axes
from ackclock.figures.sweep_axes import Swept
from ackclock.input.fields import nearest, shown
from ackclock.metrics import METRICS, full_name, main
from ackclock.scenario.points import label, numeric_column, short_keys

FORMS = ("latex", "markdown", "csv")

#: Characters that LaTeX interprets, or has no letter for.
LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{letter: f"\\{letter}" for letter in "{}_#&$%"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "−": "$-$",
        "±": r"$\pm$",
        "·": r"$\cdot$",
        "×": r"$\times$",
        "→": r"$\rightarrow$",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "µ": r"$\mu$",
        "μ": r"$\mu$",
        "…": r"\ldots{}",
        "–": "--",
    }
)


def table(sweep: Swept, form: str, metrics: Sequence[str] = ()) -> str:
    """Return the table as text; the main metrics that have values, or those named. Raises `InputError`."""
    names = [_metric(name, sweep) for name in metrics] or default_metrics(sweep)
    if form == "csv":
        return _csv(sweep, names)
    points = sweep.points
    scales = {name: sweep_axes.scale(name, (point["summary"][name]["mean"] for point in points)) for name in names}
    heads = [*short_keys(sweep.axes), *(head for _, _, head in scales.values())]
    rows = [
        [*sweep_axes.values_of(sweep, point), *(_cell(point, name, scales[name][0]) for name in names)]
        for point in points
    ]
    write = _latex if form == "latex" else _markdown
    return write(heads, rows, len(sweep.axes))


def default_metrics(sweep: Swept) -> list[str]:
    """Return the main metrics of tables that have values."""
    return [name for name in main("column") if any(sweep_axes.has_value(point, name) for point in sweep.points)]


def _metric(name: str, sweep: Swept) -> str:
    known = [each for each in sweep.metrics if not METRICS[each].per_flow]
    result = full_name(name, known)
    if result is None:
        raise InputError(f"--metrics: found {shown(name)}; expected {nearest(name, known)}")
    return result


def _cell(point: Any, name: str, factor: float) -> str:
    of = point["summary"][name]
    if not of["n"]:
        return numbers.NOTHING
    ends = [None if of[end] is None else of[end] / factor for end in ("ci95_low", "ci95_high")]
    return numbers.estimate(of["mean"] / factor, ends[0], ends[1], "1")


def _latex(heads: Sequence[str], rows: Sequence[Sequence[str]], keys: int) -> str:
    lines = [
        r"% in the preamble: \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{'l' * keys}{'r' * (len(heads) - keys)}}}",
        r"\toprule",
        *_latex_rows([heads]),
        r"\midrule",
        *_latex_rows(rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    return [" & ".join(cell.translate(LATEX) for cell in row) + r" \\" for row in rows]


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]], keys: int) -> str:
    rule = [":--"] * keys + ["--:"] * (len(heads) - keys)
    lines = [[_marked(cell) for cell in row] for row in (heads, *rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (lines[0], rule, *lines[1:]))


def _marked(cell: str) -> str:
    """Escape Markdown: names come from files."""
    return "".join(f"\\{letter}" if letter in "\\|`*_{}[]<>#" else letter for letter in cell)


def _csv(sweep: Swept, names: Sequence[str]) -> str:
    file = StringIO()
    rows = csv.writer(file, lineterminator="\n")
    ends = ("mean", "ci95_low", "ci95_high")
    keys = [(axis.key, numeric_column(axis)) for axis in sweep.axes]
    heads = [head for key, of in keys for head in (key, *([of.column] if of else []))]
    rows.writerow([*heads, "n", *(f"{name}_{end}" for name in names for end in ends)])
    for point in sweep.points:
        texts = [(label(point["values"][key]), of) for key, of in keys]
        values = [value for text, of in texts for value in (text, *([of.numbers[text]] if of else []))]
        rows.writerow([*values, point["n"], *(point["summary"][name][end] for name in names for end in ends)])
    return file.getvalue()
