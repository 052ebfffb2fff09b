"""The rule of K.cap: the fluid model with the synchronisation that a capture of a packet run tells, beside that run."""

from collections.abc import Callable, Mapping

from ackclock import metrics, replay
from ackclock.dataset import Dataset
from ackclock.gallery import Measured, Row
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView
from ackclock.plan import Plan

ENGINES = ("packet", "fluid")

VARIANTS = ("HSTCP", "CUBIC", "AIMD", "H-TCP")
BUFFERS = ("0.05", "0.2")

#: “Fed from experiments”: what is read is within 2 points of what happened; up to 5 it is of its kind.
TRUE, NEARLY = (0.0, 0.02), (0.0, 0.05)

#: The model follows its source within 2 points; up to 5 it is of its kind.
FOLLOWS, ALIKE = (0.0, 0.02), (0.0, 0.05)

#: The share of the flows hit is what was fed: within 5 points; up to 15 it is of its kind.
SAME, NEAR = (0.0, 0.05), (0.0, 0.15)

#: A capture knows no warm-up: as much of it is left out as of the run.
WARMUP = 1 / 3


def measured_part(data: Dataset) -> tuple[float, float]:
    """Return the part of a capture that is the run's measurement interval."""
    end_s = next(iter(metrics.runs(data))).run_end_s
    return WARMUP * end_s, end_s


def fed(engine: str, case: str, plan: Plan, result: Callable[[str, str], Dataset]) -> Plan:
    """The fluid engine replays what the capture of the packet engine's run of the case tells."""
    if engine != "fluid":
        return plan
    captured = result("captured", case)
    return replay(plan, captured, between=measured_part(captured))


def reported(view: RunView) -> float | None:
    """Mean share of the flows hit in an epoch, by the capture."""
    (part,) = metrics.runs(view.data, measured_part(view.data))
    found = metrics.value(part, "synchronisation")
    return None if isinstance(found, list) else found


MEASURES = {"utilisation": "utilisation", "synchronisation": "synchronisation"}
CAPTURED = {"told": reported}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Return no rows for a single engine."""
    return []


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> list[Row]:
    """Compare each variant's capture with its run, and the model with it."""
    packet, fluid = measured["packet"], measured["fluid"]

    def rows(claim: str, one: tuple[Measured, str], agrees: tuple[float, float], differs: tuple[float, float],
             other: str) -> list[Row]:  # fmt: skip
        of, name = one
        curves = {variant: [f"{variant} {buffer}" for buffer in BUFFERS] for variant in VARIANTS}
        errors = {
            variant: error([(of[case][name][0], packet[case][other][0]) for case in cases])
            for variant, cases in curves.items()
        }
        return [Row(claim, (value,), agrees, differs, variant) for variant, value in errors.items()]

    return [
        *rows("truth", (packet, "told"), TRUE, NEARLY, "synchronisation"),
        *rows("follows", (fluid, "utilisation"), FOLLOWS, ALIKE, "utilisation"),
        *rows("synchronised", (fluid, "synchronisation"), SAME, NEAR, "synchronisation"),
    ]


def error(pairs: list[tuple[float | None, float | None]]) -> float | None:
    """Mean of the absolute differences; None if one of them is not known."""
    known = [abs(one - other) for one, other in pairs if one is not None and other is not None]
    return sum(known) / len(known) if len(known) == len(pairs) else None
