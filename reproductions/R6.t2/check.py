"""The rule of R6.t2: small UDP packets shorten the delay of a full upload."""

from collections.abc import Mapping

from ackclock.metrics import RunView
from ackclock.reproduce import Measured, Row, near, ratio
from ackclock.reproduce.entry import Published

ENGINES = ("packet",)

#: A measurement on a testbed: within a tenth; within a quarter it is of its kind.
SAME, ALIKE = 0.1, 0.25

#: The upload is the first flow, and the up link the second.
UPLOAD, LINK = 0, 1


def rtt_s(view: RunView) -> float | None:
    """The upload's mean smoothed RTT."""
    samples = view.measured_samples
    return float(samples.filter(samples["flow"] == UPLOAD)["srtt_s"].to_numpy().mean())


def goodput_bps(view: RunView) -> float | None:
    """What the upload delivers."""
    return float(8 * view.flows["measured_bytes"][UPLOAD] / view.measured_s)


def use(view: RunView) -> float | None:
    """The share of the up link's capacity for TCP, 1448 of 1500 bytes, that the upload takes."""
    capacity_bps = view.plan["links"][LINK]["rate_bps"] * 1448 / 1500
    return float(8 * view.flows["measured_bytes"][UPLOAD] / view.measured_s / capacity_bps)


MEASURES = {"rtt": rtt_s, "goodput": goodput_bps, "use": use}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims, with the queue as printed; the other queue is another reading."""
    rows = [row for queue in ("120p", "20p") for row in _rows(measured, published, queue)]
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def _rows(measured: Measured, published: Mapping[str, Published], queue: str) -> list[Row]:
    alone, udp = (measured[f"{queue} {name}"] for name in ("alone", "udp"))
    found = {
        "rtt-alone": alone["rtt"],
        "rtt-udp": udp["rtt"],
        "goodput-alone": alone["goodput"],
        "goodput-udp": udp["goodput"],
        "use-alone": alone["use"],
        "use-udp": ratio(udp["goodput"], alone["goodput"]),
        "shorter": ratio(alone["rtt"], udp["rtt"]),
    }
    bands = {claim: published[claim].value or 0.0 for claim in found}
    return [
        Row(
            claim,
            values,
            near(bands[claim], SAME),
            near(bands[claim], ALIKE),
            f"queue of {queue}",
            aside=queue == "20p",
        )
        for claim, values in found.items()
    ]
