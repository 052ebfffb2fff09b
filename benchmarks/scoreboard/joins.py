"""Accuracy of joining two captures: clock offsets compared with the ground truth of the runs.

    python benchmarks/scoreboard/joins.py CASES… [--json]

`CASES` are folders that `generate.py` made. The captures at the senders and at the receivers, and each of them with
the one in the middle, are joined after the second's clock has been set and made to drift, by amounts drawn from the
case's number. Printed are the errors of the offset, with the share that is within what is stated, and of the drift,
and which of the losses that can be told from packets under way at the end are placed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

import ackclock as ac
from ackclock.capture import match
from ackclock.reproductions import pcap

#: Limits of the second clock: its offset in seconds, ahead or behind, and its drift.
MOST_OFFSET_S, MOST_DRIFT = 100.0, 100e-6


def main() -> None:
    """Prints a line for each pair of points and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, nargs="+")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each join, and nothing else")
    given = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {}
    for case in given.cases:
        for points, score in scored(case):
            found.setdefault(points, []).append(score)
            if given.json:
                print(json.dumps({"case": case.name, "points": points, **score}), flush=True)
    for points, scores in found.items() if not given.json else ():
        for name, value in summed(scores):
            print(f"{points:22} {name:34} {value}")


def scored(case: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Each pair of points of a case."""
    at = {path.stem.split("-", 2)[2]: path for path in (case / "captures").iterdir()}
    middle = next(name for name in at if name.startswith("link"))
    draw = random.Random(f"joins {case.name}")
    truth = ac.Dataset.read(case).transmissions
    for first, second in (("senders", "receivers"), ("senders", middle), (middle, "receivers")):
        offset_s, drift = draw.uniform(0, MOST_OFFSET_S), draw.uniform(-MOST_DRIFT, MOST_DRIFT)
        moved = case / "moved.pcap"
        later = (replace(record, time_ns=_moved(record.time_ns, offset_s, drift)) for record in pcap.read(at[second]))
        pcap.write(moved, later)
        told = match.read(at[first], moved).analysis["joined"]
        relation = match.join(at[first], moved).relation
        moved.unlink()
        if relation is None:
            continue
        true_s = offset_s + drift * relation.reference_s
        score = {
            "offset_error_s": abs(told["offset_s"] - true_s),
            "offset_stated_s": told["offset_error_s"],
            "drift_error_ppm": abs(told["drift_ppm"] - 1e6 * drift),
            "drift_stated_ppm": told["drift_error_ppm"],
            "lost_told": sum(told[f"segments_lost_{place}"] for place in ("before", "between", "after")),
            "between": told["segments_lost_between"] + told["acks_lost_between"],
            "missed": told["missed_by_first"] + told["missed_by_second"],
            "reordered": told["reordered"],
        }
        if (first, second) == ("senders", "receivers"):
            score["between_least"], score["between_most"] = lost(truth)
        yield f"{first}, {second}".replace(middle, "middle"), score


def _moved(time_ns: int, offset_s: float, drift: float) -> int:
    return time_ns + round(1e9 * offset_s + drift * time_ns)


def lost(truth: pl.DataFrame) -> tuple[int, int]:
    """Return the lost packets without those that may still be under way at the very end, and all lost packets.

    It may be under way if nothing came that was sent later, or if packets overtake each other, and if it was sent less
    than the longest delay before the end.
    """
    sent = truth.with_columns(came=pl.col("arrival_s").is_not_null())
    last_s = pl.col("time_s").filter("came").max().over("flow", "end")
    longest_s = (pl.col("arrival_s") - pl.col("time_s")).max().over("flow", "end")
    end_s = pl.col("arrival_s").max().over("end")
    came = sent.filter("came").sort("arrival_s", maintain_order=True)
    overtaken = came.filter(pl.col("time_s") < pl.col("time_s").cum_max().over("flow", "end"))["end"].unique()
    in_order = ~pl.col("end").is_in(overtaken.implode())
    sure = (in_order & (pl.col("time_s") < last_s)) | (pl.col("time_s") + longest_s < end_s)
    all_lost = sent.with_columns(sure=sure).filter(pl.col("fate").is_in(["dropped", "lost"]))
    return all_lost.filter("sure").height, all_lost.height


def _all_placed(score: dict[str, float]) -> bool:
    return score["between_least"] <= score["between"] <= score["between_most"] and not score["missed"]


def summed(scores: list[dict[str, float]]) -> Iterator[tuple[str, str]]:
    """Medians and shares over the joins of one pair of points."""
    within = [score["offset_error_s"] <= score["offset_stated_s"] for score in scores]
    drifts = [score["drift_error_ppm"] <= score["drift_stated_ppm"] for score in scores]
    yield "joins", str(len(scores))
    yield "offset error, median", f"{1e6 * statistics.median(score['offset_error_s'] for score in scores):.1f} us"
    yield "offset error, most", f"{1e6 * max(score['offset_error_s'] for score in scores):.1f} us"
    yield "offset within what is stated", f"{100 * statistics.mean(within):.1f} %"
    yield "drift error, median", f"{statistics.median(score['drift_error_ppm'] for score in scores):.4f} ppm"
    yield "drift error, most", f"{max(score['drift_error_ppm'] for score in scores):.4f} ppm"
    yield "drift within what is stated", f"{100 * statistics.mean(drifts):.1f} %"
    known = [score for score in scores if "between_least" in score]
    if known:
        yield "lost between, all", str(sum(score["between_most"] for score in known))
        yield "lost between, not at the very end", str(sum(score["between_least"] for score in known))
        yield "lost between, told", str(sum(score["between"] for score in known))
        yield "joins with all losses placed", str(sum(map(_all_placed, known)))
    yield "missed by a capture (none is)", str(sum(score["missed"] for score in scores))


if __name__ == "__main__":
    main()
