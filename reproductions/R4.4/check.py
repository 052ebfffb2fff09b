"""The rule of R4.4: throughput ratios of two antiparallel flows, queues in bytes, beside the thesis's model."""

from collections.abc import Mapping
from math import inf

import numpy as np

from ackclock.metrics import RunView
from ackclock.metrics.view import Array
from ackclock.reproduce import Measured, Row, near
from ackclock.reproduce.entry import Published
from ackclock.reproduce.measured import Values

ENGINES = ("packet",)

#: Rates in Mb/s, the down queue in KB, and the sizes of the up queue in KB (table 4.3).
LINES = {
    "10:1": (10, 1, 150, (36, 75, 105, 150)),
    "10:2": (10, 2, 150, (36, 75, 105, 150)),
    "10:5": (10, 5, 150, (36, 75, 105, 150)),
    "20:4": (20, 4, 300, (72, 150, 210, 300)),
}

#: The round-trip time without queues (s), and a full packet with 8 bytes of layer 2.
RTT_S, PACKET_BYTES = 0.042, 1508

#: At a tilt both w / C are equal: what rounding leaves of it.
ROUNDING = 1e-9

#: “An error of a few per cent only”: up to 5 %; a tenth is of its kind.
A_FEW, A_TENTH = 0.05, 0.1

#: “Slightly less precise (10 % of error)”; a quarter is of its kind.
ABOUT_10, ABOUT_25 = 0.125, 0.25

#: “Off by more than 40 %”: the model gives 1.4 times less than the simulation, whose compressed ACKs help the
#: download; a fifth off is of its kind.
OFF_BY_40, OFF_BY_20 = (1.4, inf), (1.2, inf)

#: “Follows linearly”: the coefficient of determination.
LINEAR, ALMOST = (0.95, 1.0), (0.8, 1.0)

#: A second simulator of the same set-up.
WITHIN_10, WITHIN_20 = 0.1, 0.2


def throughput_ratio(view: RunView) -> float | None:
    """X_down / X_up over the measured part."""
    down, up = view.flows["measured_bytes"]
    return float(down / up) if up else None


MEASURES = {"ratio": throughput_ratio}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    rows = [row for line in LINES for row in _line(line, measured)]
    for claim, known in published.items():
        if claim.startswith("second-") and known.value is not None:
            case = claim.removeprefix("second-").replace("-", " ")
            bands = near(known.value, WITHIN_10), near(known.value, WITHIN_20)
            rows.append(Row(claim, measured[case]["ratio"], *bands, aside=True))
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def _line(line: str, measured: Measured) -> list[Row]:
    down_mbps, up_mbps, queue_kb, sizes_kb = LINES[line]
    found = [measured[f"{line} {size}KB"]["ratio"] for size in sizes_kb]
    rows = [Row("linear", _determination([queue_kb / size for size in sizes_kb], found), LINEAR, ALMOST, line)]
    for size, values in zip(sizes_kb, found, strict=True):
        expected = model((down_mbps * 125e3, up_mbps * 125e3), (queue_kb * 1e3, size * 1e3))
        off = tuple(None if value is None else value / expected for value in values)
        rows.append(_beside_the_model(line, size, off))
    return rows


def _beside_the_model(line: str, size: int, off: Values) -> Row:
    at = f"{line} {size}KB"
    if at == "10:5 36KB":
        return Row("outlier", off, OFF_BY_40, OFF_BY_20, at)
    if line == "10:5":
        return Row("model-5", off, near(1, ABOUT_10), near(1, ABOUT_25), at)
    claim = "model-1" if line == "10:1" else "model"
    return Row(claim, off, near(1, A_FEW), near(1, A_TENTH), at, aside=line == "10:1")


def _determination(ratios: list[float], found: list[Values]) -> Values:
    """R² of a straight line through the queues' and the throughputs' ratios, for each seed."""
    seeds = zip(*found, strict=True)
    return tuple(None if None in seed else float(np.corrcoef(ratios, seed)[0, 1] ** 2) for seed in seeds)


def model(
    rates: tuple[float, float], queues: tuple[float, float], *, begin_s: float = 300.0, end_s: float = 2000.0
) -> float:
    """The ratio of the mean windows, which is that of the throughputs, by the state machine of section 4.3.

    Rates in bytes/s, queues in bytes, both down and up. After a loss both windows have grown by a packet, that of the
    flow with the full queue is halved, and the other too if its queue cannot hold what comes over.
    """
    full = [queue + rate * RTT_S for queue, rate in zip(queues, rates, strict=True)]
    windows, areas, now_s = np.full(2, float(PACKET_BYTES)), np.zeros(2), 0.0
    while now_s < end_s:
        mine, until, lasted_s, mean = _stretch(windows, rates, full)
        if now_s >= begin_s:
            areas += lasted_s * (windows - windows[mine] + mean)
        now_s += lasted_s
        windows = windows - windows[mine] + until
        if until >= full[mine]:
            windows += PACKET_BYTES
            windows[mine] /= 2
            windows[1 - mine] /= 2 if windows[1 - mine] > full[1 - mine] else 1
    return float(areas[0] / areas[1])


def _stretch(windows: Array, rates: tuple[float, float], full: list[float]) -> tuple[int, float, float, float]:
    """The flow with the backlog, its window at the end of the state, how long that takes (s), its mean until then.

    Without a backlog both windows grow by a packet in each RTT, until one fills its link (equation 4.8). Then the
    window with the larger w / C grows as in 4.10 until the backlog tilts (4.12, in which the print lacks a factor C_i)
    or the queue is full (4.13), as it may be at once after a tilt.
    """
    pipes = [rate * RTT_S for rate in rates]
    missing = [pipe - window for pipe, window in zip(pipes, windows, strict=True)]
    if min(missing) > 0:
        mine = int(np.argmin(missing))
        return mine, pipes[mine], missing[mine] * RTT_S / PACKET_BYTES, (pipes[mine] + windows[mine]) / 2
    mine = int(windows[1] / rates[1] * (1 + ROUNDING) >= windows[0] / rates[0])
    before, gap = windows[mine], windows[1 - mine] - windows[mine]
    tilt = rates[mine] * gap / (rates[1 - mine] - rates[mine])
    until = max(before, min(full[mine], tilt) if tilt > before else full[mine])
    lasted_s = (until**2 - before**2) / (2 * PACKET_BYTES * rates[mine])
    mean = 2 / 3 * (until**2 + until * before + before**2) / (until + before)
    return mine, until, lasted_s, mean
