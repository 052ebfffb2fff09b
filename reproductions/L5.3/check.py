"""The rule of L5.3: ABCC beside TCP on one link, without and with random errors."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published

ENGINES = ("packet",)
MEASURES = {"goodput": "goodput_bps"}

#: “Almost the same”: within a tenth; within a quarter it is of its kind.
SAME, ALIKE = near(1.0, 0.1), near(1.0, 0.25)

#: “Decreases”: by a twentieth at least; it does not grow.
DECREASES, NOT_MORE = (0.0, 0.95), (0.0, 1.0)

#: “Higher”: by a twentieth at least; down to a twentieth less it is about the same.
HIGHER, NOT_LOWER = (1.05, inf), (0.95, inf)


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    found = {case: values["goodput"] for case, values in measured.items()}
    return [
        Row("same", ratio(found["ABCC none"], found["TCP none"]), SAME, ALIKE),
        *(
            Row("decreases", ratio(found[f"{name} errors"], found[f"{name} none"]), DECREASES, NOT_MORE, name)
            for name in ("TCP", "ABCC")
        ),
        Row("higher", ratio(found["ABCC errors"], found["TCP errors"]), HIGHER, NOT_LOWER),
    ]
