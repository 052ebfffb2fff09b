"""The rule of R6.t2: small UDP packets shorten the delay of a full upload."""

from collections.abc import Mapping

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values
from ackclock.metrics import RunView, value

ENGINES = ("packet", "theory", "linux")

#: A measurement on a testbed: within a tenth; within a quarter it is of its kind.
SAME, ALIKE = 0.1, 0.25

#: The upload is the first flow, and the up link the second.
UPLOAD, LINK = 0, 1


def rtt_s(view: RunView) -> float | None:
    """The upload's mean smoothed RTT."""
    if view.given:
        return value(view, "rtt_mean_s")
    samples = view.measured_samples
    return float(samples.filter(samples["flow"] == UPLOAD)["srtt_s"].to_numpy().mean())


def goodput_bps(view: RunView) -> float | None:
    """Return the goodput of the upload."""
    if view.given:
        return value(view, "goodput_bps")
    return float(8 * view.flows["measured_bytes"][UPLOAD] / view.measured_s)


def use(view: RunView) -> float | None:
    """The share of the up link's capacity for TCP, 1448 of 1500 bytes, that the upload takes."""
    capacity_bps = view.plan.links[LINK].rate_bps * 1448 / 1500
    return goodput_bps(view) / capacity_bps


def model(view: RunView) -> float | None:
    """1 where a closed form gave the metrics."""
    return 1.0 if view.given else None


MEASURES = {"rtt": rtt_s, "goodput": goodput_bps, "use": use, "model": model}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims. A closed form's are asides: the table is of a testbed."""
    alone, beside = measured["alone"], measured["udp"]
    found = {
        "rtt-alone": alone["rtt"],
        "rtt-udp": beside["rtt"],
        "goodput-alone": alone["goodput"],
        "goodput-udp": beside["goodput"],
        "use-alone": alone["use"],
        "use-udp": ratio(beside["goodput"], alone["goodput"]),
        "shorter": ratio(alone["rtt"], beside["rtt"]),
    }
    given = alone["model"][0] is not None
    return [_row(published[claim], values, aside=given) for claim, values in found.items()]


def _row(claim: Published, values: Values, *, aside: bool) -> Row:
    value = claim.value or 0.0
    return Row(claim.claim, values, near(value, SAME), near(value, ALIKE), aside=aside)
