"""The rule of L5.7–5.8: end-to-end delay in a fat tree, single path, ECMP with TCP, ECMP with ABCC."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, Values, near, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import transfer_loss

ENGINES = ("packet",)
MEASURES = {"delay": "one_way_delay_mean_s", "loss": transfer_loss}

#: Losses of another load: within a half; within a factor of three they are of its kind. They decide about load and α.
SAME_LOSS, ALIKE_LOSS = 0.5, 3.0

#: “Larger”: by a tenth at least; within a tenth they are the same.
LARGER, THE_SAME = (1.1, inf), (1 / 1.1, inf)

#: “Reduces greatly”: by a third at least; at all.
GREATLY, REDUCED = (0.0, 0.67), (0.0, 1.0)

#: “Almost the same”: within a tenth; within a third it is of its kind.
SAME, ALIKE = 0.1, 1 / 3


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    losses = (("loss", "single path"), ("loss-tcp", "ECMP, TCP"), ("loss-abcc", "ECMP, ABCC"))
    single, tcp, abcc = (measured[case]["delay"] for case in ("single path", "ECMP, TCP", "ECMP, ABCC"))
    return [
        *(_loss(published[claim], measured[case]["loss"]) for claim, case in losses),
        Row("single", ratio(single, tcp), LARGER, THE_SAME),
        Row("reduced", ratio(abcc, single), GREATLY, REDUCED),
        Row("same", ratio(abcc, tcp), near(1.0, SAME), near(1.0, ALIKE)),
    ]


def _loss(claim: Published, found: Values) -> Row:
    value = claim.value or 0.0
    return Row(claim.claim, found, near(value, SAME_LOSS), (value / ALIKE_LOSS, value * ALIKE_LOSS))
