"""The rule of K.ver: which fluid model is nearer to packets."""

from collections.abc import Mapping

import numpy as np

from ackclock.gallery import Measured, Row
from ackclock.gallery.entry import Published

ENGINES = ("packet", "fluid", "ns2")
FLUID, SIMULATORS = "fluid", ("packet", "ns2")
MEASURES = {"utilisation": "utilisation", "queue": "queue_mean_p"}

VARIANTS, BUFFERS = ("HSTCP", "CUBIC"), ("0.02", "0.1")
SYNCHRONISED, SMOOTH, PACKETS = "synchronised", "smooth", "packets"

#: “More accurate”: nearer; up to a tenth farther it is as accurate.
NEARER, AS_NEAR = (0.0, 1.0), (0.0, 1.1)


def runs(engine: str, case: str) -> bool:
    """Packets have losses of their own."""
    return (engine in SIMULATORS) == case.endswith(PACKETS)


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Return no rows for a single engine."""
    return []


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> dict[str, list[Row]]:
    """The distances' ratio, of all buffers of a variant, for each simulator."""
    if FLUID not in measured:
        return {}
    there = [engine for engine in SIMULATORS if engine in measured]
    return {f"{engine}, {FLUID}": _rows(measured[engine], measured[FLUID]) for engine in there}


def _rows(simulated: Measured, fluid: Measured) -> list[Row]:
    return [
        Row(measure, (nearer(simulated, fluid, variant, measure),), NEARER, AS_NEAR, variant)
        for measure in MEASURES
        for variant in VARIANTS
    ]


def nearer(simulated: Measured, fluid: Measured, variant: str, measure: str) -> float:
    """The distance with the synchronisation model over that with the plain one."""
    synchronised, smooth = (distance(simulated, fluid, variant, each, measure) for each in (SYNCHRONISED, SMOOTH))
    return synchronised / smooth


def distance(simulated: Measured, fluid: Measured, variant: str, losses: str, measure: str) -> float:
    """Mean over the buffers of |fluid − simulated|, each a mean over its runs."""
    cases = [f"{variant} {buffer}" for buffer in BUFFERS]
    models = [np.mean(fluid[f"{case} {losses}"][measure]) for case in cases]
    packets = [np.mean(simulated[f"{case} {PACKETS}"][measure]) for case in cases]
    return float(np.mean(np.abs(np.subtract(models, packets))))
