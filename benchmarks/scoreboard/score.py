"""Accuracy of capture analysis: outcomes, causes, windows and limits against the ground truth, for each vantage point.

    python benchmarks/scoreboard/score.py CASES… [--json]

`CASES` are folders that `generate.py` made. A copy of a segment is told by its flow, its first byte and how often that
was sent before; a copy that only one side knows counts against the class that this side gives it. What was sent again
although an earlier copy arrives is spurious, whatever became of it. Copies under way at the end of a run are left out,
and so are those of which the capture ends before anything could tell: their share stands beside.

A window is looked at where the capture marks it as limiting, at the sender. What holds a sender back is right if it is
what most segments of the round trip before have waited for; a sender that paces does not say whether in slow start.
Whose the queue was is asked where the window limits: see `rounds.py`. Each round trip counts once.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import rounds
from rounds import CAUSES_OF_WAITING

import ackclock as ac
from ackclock import _core

#: Outcomes that are equal where only the network loses packets and nothing duplicates them.
SAME_FATE = {"lost_upstream": "lost", "reordered": "delivered"}

#: Why a segment was sent again → what the capture calls it.
SAME_CAUSE = {"fast_retransmit": "fast", "after_timeout": "timeout"}

#: The columns that identify a copy.
COPY = ["flow", "offset_bytes", "copy"]

CLASSES = ("delivered", "lost", "spurious")

#: The link whose queue is a flow's own, or shared.
BOTTLENECK = "near>far"


def main() -> None:
    """Prints a line for each vantage and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, nargs="+")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each capture, and nothing else")
    given = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {}
    for case in given.cases:
        data = ac.Dataset.read(case)
        for path in sorted((case / "captures").iterdir()):
            score = scored(path, data)
            found.setdefault(path.stem.split("-", 2)[2], []).append(score)
            if given.json:
                print(json.dumps({"case": case.name, "capture": path.name, **score}))
    for vantage, scores in found.items() if not given.json else ():
        for name, value in _summed(scores):
            print(f"{vantage:12} {name:28} {value:.4f}")


def scored(path: Path, data: ac.Dataset) -> dict[str, float]:
    """Counts of one capture: hits, misses and false ones of each class; causes; limits; queues; windows."""
    tables, begin_s = read(path)
    truth = data.transmissions.filter((pl.col("end") == "sender") & (pl.col("payload_bytes") > 0))
    flows = rounds.flows(tables["flows"])
    fates = _of_fates(_copies_of(tables["segments"], flows), _true(truth))
    samples = tables["flow_samples"]
    looked_at = rounds.at_sender(rounds.sampled_rounds(samples, flows, begin_s), passed(tables, truth, begin_s))
    found = {**fates, **_of_limits(looked_at, truth), **_of_queues(looked_at, data, truth)}
    at_sender = "senders" in path.name  # elsewhere a window is seen when it was another one
    return {**found, **(_of_windows(samples, flows, truth, begin_s) if at_sender else {})}


def read(path: Path, expression: str = "") -> tuple[Mapping[str, Any], float]:
    """Return the analysis of a capture, or of a part of it, and the start of the run's time."""
    capture = _core.Capture([path], expression, interval_s=0.01, segments=True)
    while capture.advance(10**9):
        pass
    return capture.drain(), (capture.origin_ns or 0) * 1e-9


def passed(tables: Mapping[str, Any], truth: pl.DataFrame, begin_s: float) -> pl.DataFrame:
    """When each copy passed the capture's point, `seen_s`, and when it was sent, `sent_s`, in the run's time."""
    told = _copies_of(tables["segments"], rounds.flows(tables["flows"])).filter(pl.col("told") != "lost")
    both = _true(truth).join(told, on=COPY)
    return both.select("flow", "sent_s", seen_s=pl.col("seen_s") + begin_s)


def _copies_of(columns: Mapping[str, object], flows: pl.DataFrame) -> pl.DataFrame:
    """Each copy as the analysis has it; what it tells of several segments together, of each."""
    rows = pl.DataFrame(dict(columns)).rename({"flow": "told"}).join(flows, on="told")
    each = rows.with_columns(segment=pl.int_ranges(pl.col("segments").cast(pl.Int64))).explode("segment")
    offset_bytes = pl.col("offset_bytes") + (pl.col("segment") * pl.col("mss")).cast(pl.UInt64)
    rows = each.with_columns(offset_bytes).sort("time_s", maintain_order=True)
    words = {"fate": dict(enumerate(_core.CAPTURE_FATES)), "cause": dict(enumerate(_core.CAPTURE_CAUSES))}
    return rows.select(
        "flow",
        "offset_bytes",
        _copy("flow", "offset_bytes"),
        told=pl.col("fate").replace_strict(words["fate"], return_dtype=pl.String).replace(SAME_FATE),
        why=pl.col("cause").replace_strict(words["cause"], return_dtype=pl.String),
        seen_s="time_s",
    )


def _true(truth: pl.DataFrame) -> pl.DataFrame:
    """Each copy as the run has it; what was sent after the first that arrived was sent for nothing."""
    rows = truth.sort("time_s", maintain_order=True).with_columns(pl.col("flow", "sequence").cast(pl.Int64))
    first = pl.col("sequence").first().over("flow")
    rows = rows.with_columns(offset_bytes=((pl.col("sequence") - first) % 2**32).cast(pl.UInt64))
    fate = pl.col("fate").cast(pl.String)
    arrived = fate.is_in(["delivered", "duplicate"])
    before = arrived.cast(pl.UInt32).cum_sum().over("flow", "offset_bytes") - arrived.cast(pl.UInt32)
    true = (
        pl.when(fate == "under_way")
        .then(pl.lit("under_way"))
        .when(before > 0)
        .then(pl.lit("spurious"))
        .otherwise(pl.when(arrived).then(pl.lit("delivered")).otherwise(pl.lit("lost")))
    )
    because = pl.col("cause").cast(pl.String).replace(SAME_CAUSE)
    copy = _copy("flow", "offset_bytes")
    return rows.select("flow", "offset_bytes", copy, true=true, because=because, sent_s="time_s")


def _copy(*same: str) -> pl.Expr:
    return pl.int_range(pl.len(), dtype=pl.UInt32).over(*same).alias("copy")


def _of_fates(told: pl.DataFrame, true: pl.DataFrame) -> dict[str, float]:
    both = true.join(told, on=COPY, how="full", coalesce=True)
    both = both.filter(pl.col("true").is_null() | (pl.col("true") != "under_way"))
    found: dict[str, float] = {"copies": both.height, "unresolved": both.filter(pl.col("told") == "unresolved").height}
    both = both.filter(pl.col("told").is_null() | (pl.col("told") != "unresolved"))
    for name in CLASSES:
        is_true, is_told = pl.col("true") == name, pl.col("told") == name
        found[f"{name} hits"] = both.filter(is_true & is_told).height
        found[f"{name} misses"] = both.filter(is_true & ~is_told.fill_null(value=False)).height
        found[f"{name} false"] = both.filter(is_told & ~is_true.fill_null(value=False)).height
    again = both.filter((pl.col("copy") > 0) & pl.col("because").is_in(["fast", "timeout", "tail_probe"]))
    again = again.filter(pl.col("told") != "spurious")
    return {**found, "causes": again.height, "causes right": again.filter(pl.col("because") == pl.col("why")).height}


def _of_windows(
    samples: Mapping[str, Any], flows: pl.DataFrame, truth: pl.DataFrame, begin_s: float
) -> dict[str, float]:
    """Score samples limited by the window: their number, within a segment, and within 5 % of its whole segments.

    Nothing of a window's fraction of a segment goes out, and so nobody can see it.
    """
    names = ("time_s", "flow", "cwnd")
    rows = pl.DataFrame({name: samples[name] for name in names}).rename({"flow": "told"}).join(flows, on="told")
    rows = rows.filter(pl.col("cwnd").is_not_nan()).with_columns(pl.col("time_s") + begin_s).sort("time_s")
    true = truth.select("time_s", pl.col("flow").cast(pl.Int64), true=pl.col("cwnd").floor()).sort("time_s")
    both = rows.join_asof(true, on="time_s", by="flow", tolerance=1.0).drop_nulls("true")
    error = (both["cwnd"] - both["true"]).abs()
    return {
        "windows": both.height,
        "windows within a segment": int((error <= 1).sum()),
        "windows within 5 %": int((error <= 0.05 * both["true"]).sum()),
    }


def _of_limits(rows: pl.DataFrame, transmissions: pl.DataFrame) -> dict[str, float]:
    """Score the limit of samples 10 ms apart or more against the one that most segments of the last round trip met."""
    both = rounds.limits(rows, transmissions)
    found: dict[str, float] = {}
    for name in CAUSES_OF_WAITING:
        is_true = pl.col("true") == name
        paced = (pl.col("said") == "slow_start") & pl.col("paced") & (name == "window")
        right = pl.col("said").is_in(rounds.SAME_LIMIT.get(name, [name])) | paced
        found[f"limit {name}"] = both.filter(is_true).height
        found[f"limit {name} right"] = both.filter(is_true & right).height
    return found


def _of_queues(rows: pl.DataFrame, data: ac.Dataset, transmissions: pl.DataFrame) -> dict[str, float]:
    """Score the owner of the queue in samples limited by the window, while the link is full or free."""
    both = rounds.queues(rounds.limits(rows, transmissions).filter(pl.col("true") == "window"), data, BOTTLENECK)
    found: dict[str, float] = {}
    for name, word in rounds.QUEUES.items():
        true = both.filter(pl.col("queue") == name)["said"]
        found[f"queue {name}"] = len(true)
        found[f"queue {name} right"] = int((true == word).sum())
    return found


def _summed(scores: list[dict[str, float]]) -> Iterator[tuple[str, float]]:
    """F1 of each class over all copies, and shares of what is right."""
    total = {name: sum(score[name] for score in scores) for name in scores[0]}
    for name in CLASSES:
        hits, wrong = total[f"{name} hits"], total[f"{name} misses"] + total[f"{name} false"]
        yield f"F1 of {name}", 2 * hits / max(1, 2 * hits + wrong)
    yield "unresolved", total["unresolved"] / max(1, total["copies"])
    yield "causes right", total["causes right"] / max(1, total["causes"])
    yield from _shares(total, CAUSES_OF_WAITING, "limit {}", "limited by {}, told", "limits right")
    yield from _shares(total, rounds.QUEUES, "queue {}", "queue {}, told", "queues right")
    for name in ("within a segment", "within 5 %") if "windows" in total else ():
        yield f"windows {name}", total[f"windows {name}"] / max(1, total["windows"])


def _shares(
    total: Mapping[str, float], names: Iterable[str], count: str, each: str, whole: str
) -> Iterator[tuple[str, float]]:
    """Yield the share of correct results of each kind, and of all."""
    counts = {name: total[count.format(name)] for name in names}
    right = {name: total[f"{count.format(name)} right"] for name in names}
    for name, count_of in counts.items():
        yield each.format(name), right[name] / max(1, count_of)
    yield whole, sum(right.values()) / max(1, sum(counts.values()))


if __name__ == "__main__":
    main()
