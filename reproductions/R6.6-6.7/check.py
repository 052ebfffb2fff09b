"""The rule of R6.6–6.7: a download and an upload, behind a bloated queue, a right-sized one, beside UDP."""

from collections.abc import Callable, Mapping
from math import inf

from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView
from ackclock.reproductions.measures import rtt_of_acks_s

ENGINES = ("packet", "linux")

#: The download is the first flow and the down link the first link; the upload the second of each.
DOWNLOAD, UPLOAD = 0, 1

#: A measurement on a testbed: within a tenth; within a quarter it is of its kind.
SAME, ALIKE = 0.1, 0.25

#: A factor of the RTT, printed to a half: within a fifth; within two fifths it is of its kind.
SAME_FACTOR, ALIKE_FACTOR = 0.2, 0.4

#: “Hardly 40 %”: a third to 45 %; up to 60 % the download still suffers.
HARDLY, SUFFERS = (0.33, 0.45), (0.15, 0.6)

#: “Clearly better”: by a quarter at least; better at all.
CLEARLY_BETTER, BETTER = (1.25, inf), (1.0, inf)

#: “Similar”: within a fifth; within two fifths it is of its kind.
SIMILAR, OF_ITS_KIND = 0.2, 0.4


def share(flow: int) -> Callable[[RunView], float | None]:
    """Measure a flow's goodput as a share of the TCP data that its link carries: 1448 of 1500 bytes."""

    def of(view: RunView) -> float | None:
        capacity_bps = view.plan.links[flow].rate_bps * 1448 / 1500
        return float(8 * view.flows["measured_bytes"][flow] / view.measured_s) / capacity_bps

    return of


MEASURES = {
    "rtt-down": rtt_of_acks_s(DOWNLOAD),
    "rtt-up": rtt_of_acks_s(UPLOAD),
    "download": share(DOWNLOAD),
    "upload": share(UPLOAD),
}


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs two cases."""
    return engine != "linux" or case in ("slow bloated", "slow udp")


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows by claim and link. The printed round trips say how large the queues were."""
    rows = [row for link in ("slow", "fast") for row in _rows(measured, published, link)]
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def _rows(measured: Measured, published: Mapping[str, Published], at: str) -> list[Row]:
    bloated, right, udp, bursts = (measured[f"{at} {up}"] for up in ("bloated", "right-sized", "udp", "bursts"))

    def close(claim: str, values, same: float = SAME, alike: float = ALIKE) -> Row:
        value = published[claim].value or 1.0
        return Row(claim, values, near(value, same), near(value, alike), at)

    factors = SAME_FACTOR, ALIKE_FACTOR
    return [
        close("rtt-down", bloated["rtt-down"]),
        close("rtt-up", bloated["rtt-up"]),
        close("upload", bloated["upload"]),
        Row("download", bloated["download"], HARDLY, SUFFERS, at),
        close("right-rtt", ratio(bloated["rtt-down"], right["rtt-down"]), *factors),
        close("right-download", right["download"]),
        close("right-upload", right["upload"]),
        close("udp-rtt", ratio(bloated["rtt-down"], udp["rtt-down"]), *factors),
        Row("udp-download", ratio(udp["download"], bloated["download"]), CLEARLY_BETTER, BETTER, at),
        close("bursts-rtt", ratio(bursts["rtt-down"], udp["rtt-down"]), SIMILAR, OF_ITS_KIND),
        close("bursts-download", ratio(bursts["download"], udp["download"]), SIMILAR, OF_ITS_KIND),
    ]
