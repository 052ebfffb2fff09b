"""The rule of G.rate: how rare losses must be for 10 Gb/s, and what a sawtooth leaves."""

from collections.abc import Mapping

from ackclock import theory
from ackclock.gallery import Measured, Row, near
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView

ENGINES = ("theory",)

#: Numbers of one digit: what rounding allows; up to a half they are of this order.
ONE_DIGIT, OF_ITS_ORDER = 0.1, 0.5

#: “75 %”: two digits.
TWO_DIGITS, NEARLY = 0.01, 0.1


def packets(view: RunView) -> float | None:
    """Return the window that Mathis's formula needs for 10 Gb/s at the plan's RTT and packet size."""
    return theory.loss_free_packets(10e9, view.plan.mean_base_rtt_s, view.plan.packet_bytes)


MEASURES = {"throughput": "throughput_bps", "packets": packets, "use": "utilisation"}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    lossy, sawtooth = measured["rare losses"], measured["no buffer"]
    found = {"rate": lossy["throughput"], "packets": lossy["packets"]}
    rows = [
        Row(
            claim,
            values,
            near(published[claim].value or 0.0, ONE_DIGIT),
            near(published[claim].value or 0.0, OF_ITS_ORDER),
        )
        for claim, values in found.items()
    ]
    return [*rows, Row("share", sawtooth["use"], near(0.75, TWO_DIGITS), near(0.75, NEARLY))]
