"""The rule of B5.21–5.22: one flow of CUBIC, LinCubic and AccuCubic, with fast convergence and without."""

from collections.abc import Mapping
from math import inf

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.reproductions.measures import window_peak

ENGINES = ("packet", "linux", "ns2")
MEASURES = {"peak": window_peak, "losses": "losses_per_epoch"}

#: “Precisely tracking the network capacity” of 82 packets: within 3 %, two packets; within 10 % it still follows it.
PRECISELY, ROUGHLY = 0.03, 0.10

#: “Worsens the situation”: a tenth more losses at least; within a tenth nothing has changed.
WORSE, THE_SAME = (1.1, inf), (1 / 1.1, inf)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs LinCubic, and ns-2 what it has."""
    return case.startswith({"linux": "lincubic", "ns2": "cubic"}.get(engine, ""))


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    capacity = published["lincubic-peak"].value or 0.0
    peaks = {fc: measured[f"lincubic {fc}"]["peak"] for fc in ("FC on", "FC off")}
    return [
        *(Row("lincubic-peak", peaks[fc], near(capacity, PRECISELY), near(capacity, ROUGHLY), fc) for fc in peaks),
        Row("cubic-fc", _on_off(measured, "cubic"), WORSE, THE_SAME),
        Row("accucubic-fc", _on_off(measured, "accucubic"), WORSE, THE_SAME),
    ]


def _on_off(measured: Measured, control: str) -> tuple[float | None, ...]:
    return ratio(measured[f"{control} FC on"]["losses"], measured[f"{control} FC off"]["losses"])
