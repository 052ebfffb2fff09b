"""The rule of L2.1: TCP uses the less of a link the larger its capacity is."""

from collections.abc import Mapping
from itertools import pairwise

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published

ENGINES = ("packet", "ns2")
MEASURES = {"utilisation": "utilisation"}
CAPACITIES = ("155M", "622M", "2500M", "5G", "10G")

#: “A big decreasing”: to a half at most; a tenth less is still a decrease.
BIG, SOME = (0.0, 0.5), (0.0, 0.9)

#: From one capacity to the next: less; up to 2 % more it is about the same.
LESS, ABOUT = (0.0, 0.98), (0.0, 1.02)


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    found = {capacity: measured[capacity]["utilisation"] for capacity in CAPACITIES}
    return [
        Row("falls", ratio(found["10G"], found["155M"]), BIG, SOME),
        *(
            Row("steps", ratio(found[large], found[small]), LESS, ABOUT, f"{small} to {large}")
            for small, large in pairwise(CAPACITIES)
        ),
    ]
