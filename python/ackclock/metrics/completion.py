"""Completion times of finite transfers, RFC 5166's throughput as the user sees it.

A run ends before its last transfers do. `fct_mean_s` and `fct_p95_s` leave those out, and since it is
the long ones that do not end, they are too small by some amount (Braud 2016 section 7.4.1). `unfinished` counts those
left out; `fct_km_mean_s` and `fct_km_median_s` count each for as long as it was watched.

A capture ends as a run does: of the connections that were opened in it, those that were not closed are unfinished. The
size of one is not known; what was delivered stands for it. Connections that began before the capture are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics import survival
from ackclock.metrics.metric import Metric
from ackclock.metrics.quantiles import quantile
from ackclock.metrics.view import Array, RunView


def fct_mean_s(view: RunView) -> float | None:
    """Mean completion time of the transfers that were completed in the measured part.

    From the SYN to the acknowledgement of the last byte at the sender; null if no transfer was completed. Transfers
    that were still under way at the end are not counted, which makes the mean too small: see `unfinished` and
    `fct_km_mean_s`. Source: RFC 5166 (throughput), Guillier 2008 (completion time T).
    """
    result = [(float(times_s.sum()), times_s.size) for times_s in _completions_s(view)]
    total_s, count = map(sum, zip(*result, strict=True))
    return total_s / count if count else None


def fct_p95_s(view: RunView) -> float | None:
    """95th percentile of the completion times of the same transfers; `unfinished` ones are not counted here either.

    Source: RFC 5166 (throughput).
    """
    return quantile(lambda: _completions_s(view), 0.95, view.rows("flows").block_rows)


def unfinished(view: RunView) -> float | None:
    """Transfers that began in the measured part and were not completed by its end.

    Null if no finite transfer began in the measured part. Source: Braud 2016 section 7.4.1 (the bias they make).
    """
    begun, finished = view.cached(_begun)
    return float(begun - finished) if begun else None


def unfinished_share(view: RunView) -> float | None:
    """Share of the transfers begun in the measured part that were not completed by its end; null if none began.

    Source: Braud 2016 section 7.4.1.
    """
    begun, finished = view.cached(_begun)
    return (begun - finished) / begun if begun else None


def fct_km_mean_s(view: RunView) -> float | None:
    """Mean completion time of the transfers begun in the measured part, unfinished ones counted as far as watched.

    The area under the Kaplan–Meier estimate of the share still under way, up to the longest time that one of them was
    watched: a restricted mean. With nothing unfinished it is their plain mean; else it is less biased than
    `fct_mean_s`, and still too small by what lies beyond that time. Null if none was finished. Source: Kaplan
    and Meier 1958; Braud 2016 section 7.4.1.
    """
    _, finished = view.cached(_begun)
    return survival.restricted_mean(lambda: _watched(view)) if finished else None


def fct_km_median_s(view: RunView) -> float | None:
    """Median completion time of the same transfers by the Kaplan–Meier estimate.

    The first time by which half are finished; null if that is never reached. Source: Kaplan and Meier 1958.
    """
    return survival.median(lambda: _watched(view))


def fct_syn_lost_s(view: RunView) -> float | None:
    """Mean completion time of the finished transfers that had to send their SYN again.

    Of those that began in the measured part and were completed in it; null if there is none. The SYN or the SYN/ACK
    was lost: each costs an initial timeout. Unfinished ones are not counted. Source: Braud 2016, figure 7-1 (response
    times with and without the loss of a SYN).
    """
    return view.cached(_means_by_syn)[1]


def fct_syn_kept_s(view: RunView) -> float | None:
    """Mean completion time of the finished transfers whose first SYN was answered, to compare with the others.

    As `fct_syn_lost_s`. Source: Braud 2016, figure 7-1.
    """
    return view.cached(_means_by_syn)[0]


def transfers(view: RunView) -> pl.DataFrame:
    """Return the finite transfers that began in the measured part.

    `group`, `congestion`, `size_bytes`, `syn_retransmissions`; `time_s`, how long it took or, if not `finished`
    by the end of the measured part, how long it had been under way.
    """
    finite = pl.col("size_bytes").is_not_null() | pl.col("fct_s").is_not_null()
    begun = pl.col("start_s").is_between(view.warmup_s, view.duration_s, closed="left")
    in_time = (pl.col("start_s") + pl.col("fct_s") <= view.duration_s).fill_null(value=False)
    result = view.flows.filter(finite, begun).with_columns(in_time.alias("finished"))
    so_far_s = view.duration_s - pl.col("start_s")
    time_s = pl.when("finished").then("fct_s").otherwise(so_far_s).alias("time_s")
    return result.select("group", "congestion", "size_bytes", "syn_retransmissions", time_s, "finished")


def watched(result: pl.DataFrame) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the input of the Kaplan–Meier estimate: how long each transfer was watched, and whether it ended then."""
    return result["time_s"].to_numpy(), np.asarray(result["finished"].to_numpy(), dtype=bool)


def ended_by(view: RunView, instants: int) -> tuple[Array, Array]:
    """Return `distributions.completions` at evenly spaced times (s) up to the longest completion time."""
    longest_s = max(
        (float(result.times_s.max()) for result in transfers_in_blocks(view) if result.times_s.size), default=0.0
    )
    at_s = np.linspace(0.0, longest_s, instants + 1)[1:]
    share = survival.ended_by(lambda: _watched(view), at_s)
    return (at_s, share) if share.size and share[-1] > 0 else (np.empty(0), np.empty(0))


def _completions_s(view: RunView) -> Iterator[Array]:
    """Yield completion times of the transfers that were completed in the measured part, in blocks."""
    for block in view.rows("flows").blocks("start_s", "fct_s"):
        ends_s = block["start_s"] + block["fct_s"]
        yield block["fct_s"][(ends_s >= view.warmup_s) & (ends_s <= view.duration_s)]


@dataclass(frozen=True, slots=True)
class Transfers:
    """The columns of `transfers`, for a block of flows."""

    groups: npt.NDArray[np.uint32]
    sizes_bytes: Array
    times_s: Array
    finished: npt.NDArray[np.bool_]
    syn_retransmissions: Array


def transfers_in_blocks(view: RunView) -> Iterator[Transfers]:
    """Yield `transfers` in blocks."""
    columns = ("group", "start_s", "fct_s", "size_bytes", "syn_retransmissions")
    for block in view.rows("flows").blocks(*columns):
        starts_s, taken_s = block["start_s"], block["fct_s"]
        finite = ~np.isnan(block["size_bytes"]) | ~np.isnan(taken_s)
        begun = np.flatnonzero(finite & (starts_s >= view.warmup_s) & (starts_s < view.duration_s))
        finished = starts_s[begun] + taken_s[begun] <= view.duration_s
        times_s = np.where(finished, taken_s[begun], view.duration_s - starts_s[begun])
        sizes_bytes, again = block["size_bytes"][begun], block["syn_retransmissions"][begun]
        yield Transfers(block["group"][begun], sizes_bytes, times_s, finished, again)


def _watched(view: RunView) -> Iterator[tuple[Array, npt.NDArray[np.bool_]]]:
    return ((result.times_s, result.finished) for result in transfers_in_blocks(view))


def _begun(view: RunView) -> tuple[int, int]:
    """Return how many finite transfers began in the measured part, and how many of them finished by its end."""
    result = [(ended.size, int(ended.sum())) for _, ended in _watched(view)]
    return sum(begun for begun, _ in result), sum(finished for _, finished in result)


def _means_by_syn(view: RunView) -> tuple[float | None, float | None]:
    """Return mean completion times of the finished transfers without and with a retransmitted SYN."""
    sums_s, counts = np.zeros(2), np.zeros(2)
    for result in transfers_in_blocks(view):
        valid = result.finished & ~np.isnan(result.syn_retransmissions)
        again = (result.syn_retransmissions[valid] > 0).astype(np.intp)
        sums_s += np.bincount(again, result.times_s[valid], 2)
        counts += np.bincount(again, minlength=2)
    kept, lost = (float(total_s / count) if count else None for total_s, count in zip(sums_s, counts, strict=True))
    return kept, lost


METRICS = (
    Metric("fct_mean_s", "s", "Mean completion time", fct_mean_s, ranks=(14, 0, 4, 2), short="completion"),
    Metric("fct_p95_s", "s", "95th percentile of the completion time", fct_p95_s, ranks=(15,)),
    Metric("unfinished", "", "Transfers not finished", unfinished, ranks=(16,)),
    Metric("unfinished_share", "share", "Share of the transfers not finished", unfinished_share),
    Metric("fct_km_mean_s", "s", "Mean completion time, unfinished counted", fct_km_mean_s, ranks=(17,)),
    Metric("fct_km_median_s", "s", "Median completion time, unfinished counted", fct_km_median_s),
    Metric("fct_syn_lost_s", "s", "Mean completion time with a SYN sent again", fct_syn_lost_s),
    Metric("fct_syn_kept_s", "s", "Mean completion time without", fct_syn_kept_s),
)
