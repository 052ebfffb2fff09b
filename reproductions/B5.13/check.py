"""The rule of B5.13: CUBIC's flows lose together without fast convergence too."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import synchronised_flows, window_fall

ENGINES = ("packet", "linux")
MEASURES = {"fall": window_fall, "flows": synchronised_flows}

#: “Remains similar”: within a fifth; within two fifths it is of its kind.
SIMILAR, OF_ITS_KIND = near(1.0, 0.2), near(1.0, 0.4)

#: “Not the only factor”: without it most flows lose together still, 70 of 100 at least; half of them.
MOST, HALF = (70, inf), (50, inf)


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    with_it, without = measured["with"], measured["without"]
    return [
        Row("fall", ratio(without["fall"], with_it["fall"]), SIMILAR, OF_ITS_KIND),
        Row("flows", without["flows"], MOST, HALF),
    ]
