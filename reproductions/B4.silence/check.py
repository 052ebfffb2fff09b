"""The rule of B4.silence: silences of known causes in captures of 1 to 300 flows, each behind a shaper of its own."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import polars as pl

from ackclock import capture
from ackclock.capture import trace_statistics
from ackclock.gallery import Measured, Row, near, ratio
from ackclock.gallery.entry import Published
from ackclock.metrics import RunView
from ackclock.reproductions import impose, pcap
from ackclock.reproductions.imposed import CLASSES, Windows, judged, resting
from ackclock.reproductions.pcap import Record

ENGINES = ("packet",)

#: “All”: 98 of 100; nine of ten.
ALL, MOST = (0.98, 1.0), (0.9, 1.0)

#: “Between 3 and 4 Mb/s”; up to half a megabit beside it.
FROM_3_TO_4, ABOUT_IT = (3e6, 4e6), (2.5e6, 4.5e6)

#: “Smaller”: by a tenth; at all.
SMALLER, AT_ALL = (0.0, 0.9), (0.0, 1.0)

#: “A shaper”: of each capture; of half of them.
EACH, HALF = (1.0, 1.0), (0.5, 1.0)

#: “4 Mb/s”: within 2 %; within a tenth.
SAME, ALIKE = 0.02, 0.1

#: “Between 4 and 6 %”; half or one and a half times as much.
FROM_4_TO_6, FROM_2_TO_9 = (0.04, 0.06), (0.02, 0.09)

#: “10 %”: within a fifth; half or twice as much.
TEN, FROM_5_TO_20 = (0.08, 0.12), (0.05, 0.2)

#: Tolerances of the capture analysis against the truth: within 5 %; within a tenth.
TRUE, NEARLY = 0.05, 0.1

#: “Remains”: within a tenth; within a quarter.
REMAINS, ROUGHLY = 0.1, 0.25

FEW, MANY = ("1", "10", "17", "100"), ("200", "300")

#: The case with other buckets.
DEEP = "10-deep"

#: Cause → when it begins, and how long it is, as shares of the time captured.
CAUSES = {"host": (0.25, 0.075), "machine": (0.5, 0.075), "capture": (0.8, 0.075)}


def imposed(case: str, file: Path) -> Any:
    """The host stands still, then the machine is paused, then the capture loses packets: when, and who rested then.

    And what was told of the path before: behind a silence it is as if there had been none.
    """
    path = capture.read([file]).analysis["path"]
    records = pcap.read(file)
    whole_ns = records[-1].time_ns
    truth, added_ns = {}, 0
    for cause, (begin, length) in CAUSES.items():
        at_ns, by_ns = int(begin * whole_ns) + added_ns, int(length * whole_ns)
        truth[cause] = {"window_s": (1e-9 * at_ns, 1e-9 * (at_ns + by_ns)), "resting": sorted(resting(records, at_ns))}
        records = _with(records, cause, at_ns, by_ns)
        added_ns += 0 if cause == "capture" else by_ns
    pcap.write(file, records)
    return {"silences": truth, "path": path}


def _with(records: list[Record], cause: str, at_ns: int, by_ns: int) -> list[Record]:
    if cause == "capture":
        return list(impose.lost(records, at_ns, by_ns))
    return impose.in_order(impose.host(records, at_ns, by_ns, stood=cause == "machine"))


def classed(view: RunView) -> float | None:
    """Share of the silences that have a class of their cause; one that nobody imposed is the transport's."""
    answers, truth = view.data.manifest["capture"], view.data.manifest["imposed"]["silences"]
    flows = range(answers["connections"])
    windows = {cause: _windows(flows, told) for cause, told in truth.items()}
    found = [told in CLASSES[cause] for cause, told in judged(answers, windows, "transport")]
    return sum(found) / len(found) if found else None


def _windows(flows: Iterable[int], told: Any) -> Windows:
    """Return the windows, without regard to flows that were idle when a cause began."""
    window = tuple(told["window_s"])
    return {flow: None if flow in told["resting"] else window for flow in flows}


def rate_bps(view: RunView) -> float | None:
    """The mean over the flows of what each delivers."""
    return _mean(view.data.scan("captured").collect()["goodput_bps"])


def shaper(view: RunView) -> float | None:
    """Return 1 if the path's limit is reported to be a token bucket."""
    return float(view.data.manifest["imposed"]["path"]["limiter"] in ("shaper", "policer"))


def shaper_bps(view: RunView) -> float | None:
    """The rate of such a one."""
    found: float | None = view.data.manifest["imposed"]["path"]["rate_bps"]
    return found if shaper(view) else None


def loss(view: RunView) -> float | None:
    """Mean over the flows of the share that was lost until the capture lost something."""
    return _mean(trace_statistics.losses_before_capture_loss(view.data)["share"])


def run_loss(view: RunView) -> float | None:
    """The same by the run, of packets sent until the capture would lose something."""
    until_s = CAUSES["capture"][0] * view.duration_s
    sent = view.data.scan("transmissions").filter(pl.col("end") == "sender", pl.col("kind").is_in(["data", "data_fin"]))
    lost = pl.col("fate").cast(pl.String).is_in(["dropped", "lost"])
    flows = sent.filter(pl.col("run") == view.run, pl.col("time_s") < until_s).group_by("flow").agg(lost.mean())
    return _mean(flows.sort("flow").collect()["fate"])


def _mean(values: pl.Series) -> float | None:
    mean = values.mean()
    return float(mean) if isinstance(mean, (int, float)) else None


READING = {"segments": True}
MEASURES = {"run loss": run_loss}
CAPTURED = {"classed": classed, "rate": rate_bps, "shaper": shaper, "shaper rate": shaper_bps, "loss": loss}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims, by number of flows."""
    found = {flows: measured[flows] for flows in (*FEW, *MANY)}
    alone, hundred = found["1"]["rate"], found["100"]["rate"]
    rows = [row for flows, of_case in found.items() for row in _of_all(of_case, f"{flows} flows")]
    rows += [row for flows in FEW for row in _of_few(found[flows], f"{flows} flows", published)]
    same, roughly = near(1.0, REMAINS), near(1.0, ROUGHLY)
    rows += [Row("alike", ratio(found[flows]["rate"], alone), same, roughly, f"{flows} flows") for flows in FEW[1:]]
    rows += [Row("smaller", ratio(found[flows]["rate"], hundred), SMALLER, AT_ALL, f"{flows} flows") for flows in MANY]
    rows += [Row("loss-many", found[flows]["loss"], TEN, FROM_5_TO_20, f"{flows} flows") for flows in MANY]
    deep = (*_of_all(measured[DEEP], ""), *_of_few(measured[DEEP], "", published))
    rows += [replace(row, at="10 flows, deeper buckets", aside=True) for row in deep]
    return sorted(rows, key=lambda row: [*published].index(row.claim))


def _of_all(found: Mapping[str, tuple[float | None, ...]], at: str) -> list[Row]:
    told = ratio(found["loss"], found["run loss"])
    return [
        Row("classed", found["classed"], ALL, MOST, at),
        Row("truth", told, near(1.0, TRUE), near(1.0, NEARLY), at),
    ]


def _of_few(found: Mapping[str, tuple[float | None, ...]], at: str, published: Mapping[str, Published]) -> list[Row]:
    rate = published["shaper-rate"].value or inf
    return [
        Row("rate", found["rate"], FROM_3_TO_4, ABOUT_IT, at),
        Row("shaper", found["shaper"], EACH, HALF, at),
        Row("shaper-rate", found["shaper rate"], near(rate, SAME), near(rate, ALIKE), at),
        Row("loss-few", found["loss"], FROM_4_TO_6, FROM_2_TO_9, at),
    ]
