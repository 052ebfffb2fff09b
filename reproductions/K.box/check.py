"""The rule of K.box: the fluid model with the synchronisation of a packet run, beside that run."""

from collections.abc import Callable, Iterator, Mapping

from ackclock import replay
from ackclock.dataset import Dataset
from ackclock.gallery import Measured, Row
from ackclock.gallery.entry import Published
from ackclock.plan import Plan

ENGINES = ("packet", "fluid")
MEASURES = {"utilisation": "utilisation", "synchronisation": "synchronisation"}

VARIANTS = ("HSTCP", "CUBIC", "AIMD", "H-TCP")
BUFFERS = ("0.02", "0.05", "0.2")
USUAL, FAST, PACED = "1Gb/s", "10Gb/s", "paced"
#: Points that can be afforded at the paper's rate.
POINTS = (f"HSTCP 0.05 {FAST}", f"CUBIC 0.05 {FAST}")

#: “Fed”: the model follows its source within 2 points; up to 5 it is of its kind.
FOLLOWS, ALIKE = (0.0, 0.02), (0.0, 0.05)

#: The share of the flows hit is what was fed: within 5 points; up to 15 it is of its kind.
SAME, NEAR = (0.0, 0.05), (0.0, 0.15)


def runs(engine: str, case: str) -> bool:
    """All at the usual rate, two points at the paper's; paced senders where the buffer is smallest."""
    return case.endswith((f" {USUAL}", f" {BUFFERS[0]} {PACED}")) or case in POINTS


def fed(engine: str, case: str, plan: Plan, result: Callable[[str, str], Dataset]) -> Plan:
    """The fluid engine replays what the packet engine's run of the case lost."""
    return replay(plan, result("packet", case)) if engine == "fluid" else plan


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Return no rows for a single engine."""
    return []


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> list[Row]:
    """Errors of the curves and of the points at the paper's rate."""
    curves = {variant: [f"{variant} {buffer} {USUAL}" for buffer in BUFFERS] for variant in VARIANTS}
    lines = curves | {point: [point] for point in POINTS}
    return [
        *(Row("follows", (error(measured, cases, "utilisation"),), FOLLOWS, ALIKE, at) for at, cases in lines.items()),
        *_asides(measured),
        *(
            Row("synchronised", (error(measured, cases, "synchronisation"),), SAME, NEAR, at)
            for at, cases in lines.items()
        ),
    ]


def _asides(measured: Mapping[str, Measured]) -> Iterator[Row]:
    """The smallest buffer alone, with windows in clumps and with windows spread over their round trips."""
    for variant in VARIANTS:
        for senders, name in ((USUAL, "in clumps"), (PACED, "paced")):
            found = error(measured, [f"{variant} {BUFFERS[0]} {senders}"], "utilisation")
            yield Row("follows", (found,), FOLLOWS, ALIKE, f"{variant} {BUFFERS[0]}, {name}", aside=True)


def error(measured: Mapping[str, Measured], cases: list[str], measure: str) -> float | None:
    """Mean over the cases of |fluid − packet|; None if one of them has nothing to measure."""
    pairs = [(measured["fluid"][case][measure][0], measured["packet"][case][measure][0]) for case in cases]
    known = [abs(model - source) for model, source in pairs if model is not None and source is not None]
    return sum(known) / len(known) if len(known) == len(cases) else None
