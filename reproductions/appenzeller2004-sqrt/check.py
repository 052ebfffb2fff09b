"""The rule of appenzeller2004-sqrt: how small may a buffer be with many flows?"""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published

ENGINES = ("packet", "linux")
MEASURES = {"utilisation": "utilisation"}
FLOWS = ("4 flows", "25 flows", "100 flows")

#: The claims are orders: the bands have no width of their own.
ANY = (0.0, inf)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs one case."""
    return engine != "linux" or case == "4 flows a tenth"


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Utilisations by the number of flows."""
    small = {n: [measured[f"{n} {buffer}"]["utilisation"] for buffer in ("BDP/sqrt(n)", "BDP")] for n in FLOWS}
    return [
        *(Row("sqrt", ratio(*small[n]), ANY, ANY, n) for n in FLOWS),
        *(Row("tenth", measured[f"{n} a tenth"]["utilisation"], ANY, ANY, n) for n in FLOWS),
    ]
