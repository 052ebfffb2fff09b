"""The rule of K.ver: which fluid model is nearer to the packet engine."""

from collections.abc import Mapping

import numpy as np

from ackclock.gallery import Measured, Row
from ackclock.gallery.entry import Published

ENGINES = ("packet", "fluid")
MEASURES = {"utilisation": "utilisation", "queue": "queue_mean_p"}

VARIANTS, BUFFERS = ("HSTCP", "CUBIC"), ("0.02", "0.1")
SYNCHRONISED, SMOOTH, PACKETS = "synchronised", "smooth", "packets"

#: “More accurate”: nearer; up to a tenth farther it is as accurate.
NEARER, AS_NEAR = (0.0, 1.0), (0.0, 1.1)


def runs(engine: str, case: str) -> bool:
    """Packets have losses of their own."""
    return (engine == "packet") == case.endswith(PACKETS)


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Return no rows for a single engine."""
    return []


def compare(measured: Mapping[str, Measured], published: Mapping[str, Published]) -> list[Row]:
    """The distances' ratio, of all buffers of a variant."""
    return [
        Row(measure, (nearer(measured, variant, measure),), NEARER, AS_NEAR, variant)
        for measure in MEASURES
        for variant in VARIANTS
    ]


def nearer(measured: Mapping[str, Measured], variant: str, measure: str) -> float:
    """The distance with the synchronisation model over that with the plain one."""
    return distance(measured, variant, SYNCHRONISED, measure) / distance(measured, variant, SMOOTH, measure)


def distance(measured: Mapping[str, Measured], variant: str, losses: str, measure: str) -> float:
    """Mean over the buffers of |fluid − packet|, each a mean over its runs."""
    cases = [f"{variant} {buffer}" for buffer in BUFFERS]
    models = [np.mean(measured["fluid"][f"{case} {losses}"][measure]) for case in cases]
    packets = [np.mean(measured["packet"][f"{case} {PACKETS}"][measure]) for case in cases]
    return float(np.mean(np.abs(np.subtract(models, packets))))
