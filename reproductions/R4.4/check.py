"""The rule of R4.4: throughput ratios of two antiparallel flows, queues in bytes, beside the thesis's model."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values
from ackclock.reproductions import antiparallel

ENGINES = ("packet", "theory", "ns2")

#: Rates in Mb/s: the down queue in KB, and the sizes of the up queue in KB (table 4.3).
LINES = {
    "10:1": (150, (36, 75, 105, 150)),
    "10:2": (150, (36, 75, 105, 150)),
    "10:5": (150, (36, 75, 105, 150)),
    "20:4": (300, (72, 150, 210, 300)),
}

#: “An error of a few per cent only”: up to 5 %; a tenth is of its kind.
A_FEW, A_TENTH = 0.05, 0.1

#: “Slightly less precise (10 % of error)”; a quarter is of its kind.
ABOUT_10, ABOUT_25 = 0.125, 0.25

#: “Off by more than 40 %”: the model gives 1.4 times less than the simulation, whose compressed ACKs help the
#: download; a fifth off is of its kind.
OFF_BY_40, OFF_BY_20 = (1.4, inf), (1.2, inf)

#: “Follows linearly”: the coefficient of determination.
LINEAR, ALMOST = (0.95, 1.0), (0.8, 1.0)

#: A second simulator of the same set-up.
WITHIN_10, WITHIN_20 = 0.1, 0.2

MEASURES = antiparallel.RATIOS


def is_quick(engine: str, case: str) -> bool:
    """For a short look ns-2 runs one case."""
    return engine != "ns2" or case == "10:2 36KB"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    rows = [_linear(line, measured) for line in LINES]
    for claim, known in published.items():
        if claim.startswith("second-") and known.value is not None:
            case = claim.removeprefix("second-").replace("-", " ")
            bands = near(known.value, WITHIN_10), near(known.value, WITHIN_20)
            rows.append(Row(claim, measured[case]["ratio"], *bands, aside=True))
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> dict[str, list[Row]]:
    """Simulated / model, of each simulator; of the model the ratio of the mean windows, as the thesis has it."""
    return antiparallel.compare_with_theory(measured, lambda found, model: _rows(found, model, published))


def _rows(simulated: Measured, model: Measured, published: Mapping[str, Published]) -> list[Row]:
    cases = [(line, size) for line, (_, sizes) in LINES.items() for size in sizes]
    rows = [
        _relative_to_model(line, size, ratio(simulated[at]["ratio"], model[at]["windows"]))
        for line, size in cases
        for at in [f"{line} {size}KB"]
    ]
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def _linear(line: str, measured: Measured) -> Row:
    queue_kb, sizes_kb = LINES[line]
    found = [measured[f"{line} {size}KB"]["ratio"] for size in sizes_kb]
    return Row(
        "linear", antiparallel.determination([queue_kb / size for size in sizes_kb], found), LINEAR, ALMOST, line
    )


def _relative_to_model(line: str, size: int, off: Values) -> Row:
    at = f"{line} {size}KB"
    if at == "10:5 36KB":
        return Row("outlier", off, OFF_BY_40, OFF_BY_20, at)
    if line == "10:5":
        return Row("model-5", off, near(1, ABOUT_10), near(1, ABOUT_25), at)
    claim = "model-1" if line == "10:1" else "model"
    return Row(claim, off, near(1, A_FEW), near(1, A_TENTH), at, aside=line == "10:1")
