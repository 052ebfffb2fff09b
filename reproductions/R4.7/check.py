"""The rule of R4.7: throughput ratios of two antiparallel flows, queues in packets, beside the thesis's model."""

from collections.abc import Mapping
from statistics import fmean

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values
from ackclock.reproductions import antiparallel

ENGINES = ("packet", "theory", "ns2")

#: Rates in Mb/s, and the sizes of the up queue (table 4.4).
LINES, SIZES = ("10:1", "10:2", "10:5", "20:4"), ("48p", "100p", "140p", "200p")

#: The line whose rates differ least.
WEAK = "10:5"

#: “Very close”, which section 4.3 says of “a few per cent only”: up to 5 %; a tenth is of its kind.
A_FEW, A_TENTH = 0.05, 0.1

#: “Over-estimated”: the simulated ratio is less, but not less than half; as much as the model's is of its kind.
LESS, NOT_MORE = (0.5, 0.97), (0.3, 1.03)

#: “Follows the general trend”: the coefficient of determination.
TREND, ALMOST = (0.9, 1.0), (0.7, 1.0)

MEASURES = antiparallel.RATIOS


def is_quick(engine: str, case: str) -> bool:
    """For a short look ns-2 runs one case."""
    return engine != "ns2" or case == "10:2 48p"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The claims set both engines beside each other."""
    return []


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> dict[str, list[Row]]:
    """Simulated / model, of each simulator; of the model the ratio of the mean windows, as the thesis has it."""
    return antiparallel.compare_with_theory(measured, _rows)


def _rows(simulated: Measured, model: Measured) -> list[Row]:
    of_line = {line: [_row(f"{line} {size}", simulated, model) for size in SIZES] for line in LINES}
    weak = of_line.pop(WEAK)
    return [row for rows in of_line.values() for row in rows] + weak + [_trend(simulated, model)]


def _row(at: str, simulated: Measured, model: Measured) -> Row:
    off = ratio(simulated[at]["ratio"], model[at]["windows"])
    if at.startswith(WEAK):
        return Row("over-5", off, LESS, NOT_MORE, at)
    return Row("model", off, near(1, A_FEW), near(1, A_TENTH), at)


def _trend(simulated: Measured, model: Measured) -> Row:
    expected = [_mean(model[f"{WEAK} {size}"]["windows"]) for size in SIZES]
    found = [simulated[f"{WEAK} {size}"]["ratio"] for size in SIZES]
    return Row("trend-5", antiparallel.determination(expected, found), TREND, ALMOST)


def _mean(values: Values) -> float:
    return fmean(value for value in values if value is not None)
