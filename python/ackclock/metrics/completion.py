"""How long finite transfers took: RFC 5166's completion times (throughput as the user sees it).

A run ends before its last transfers do. `completion_mean_s` and `completion_p95_s` leave those out, and since it is
the long ones that do not end, they are too small by some amount (Braud 2016 section 7.4.1). `unfinished` says how many
were left out; `completion_km_mean_s` and `completion_km_median_s` count each for as long as it was watched.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics import survival
from ackclock.metrics.metric import Metric
from ackclock.metrics.view import Array, RunView


def completion_mean_s(view: RunView) -> float | None:
    """Mean completion time of the transfers that were completed in the measured part.

    From the SYN to the acknowledgement of the last byte at the sender; null if no transfer was completed. Transfers
    that were still under way at the end are not counted, which makes the mean too small: see `unfinished` and
    `completion_km_mean_s`. Source: RFC 5166 (throughput), Guillier 2008 (completion time T).
    """
    times_s = view.once(_completions_s)
    return float(times_s.mean()) if times_s.size else None


def completion_p95_s(view: RunView) -> float | None:
    """95th percentile of the completion times of the same transfers; `unfinished` ones are not counted here either.

    Source: RFC 5166 (throughput).
    """
    times_s = view.once(_completions_s)
    return float(np.quantile(times_s, 0.95)) if times_s.size else None


def unfinished(view: RunView) -> float | None:
    """Transfers that began in the measured part and were not completed by its end.

    Null if no finite transfer began in the measured part. Source: Braud 2016 section 7.4.1 (the bias they make).
    """
    begun = view.once(transfers)
    return float((~begun["finished"]).sum()) if begun.height else None


def unfinished_share(view: RunView) -> float | None:
    """Share of the transfers begun in the measured part that were not completed by its end; null if none began.

    Source: Braud 2016 section 7.4.1.
    """
    left, begun = unfinished(view), view.once(transfers).height
    return None if left is None else left / begun


def completion_km_mean_s(view: RunView) -> float | None:
    """Mean completion time of the transfers begun in the measured part, unfinished ones counted as far as watched.

    The area under the Kaplan–Meier estimate of the share still under way, up to the longest time that one of them was
    watched: a restricted mean. With nothing unfinished it is their plain mean; else it is less biased than
    `completion_mean_s`, and still too small by what lies beyond that time. Null if none was finished. Source: Kaplan
    and Meier 1958; Braud 2016 section 7.4.1.
    """
    times_s, ended = watched(view.once(transfers))
    return survival.restricted_mean(times_s, ended) if ended.any() else None


def completion_km_median_s(view: RunView) -> float | None:
    """Median completion time of the same transfers by the Kaplan–Meier estimate.

    The first time by which half are finished; null if that is never reached. Source: Kaplan and Meier 1958.
    """
    return survival.median(*watched(view.once(transfers)))


def completion_syn_lost_s(view: RunView) -> float | None:
    """Mean completion time of the finished transfers that had to send their SYN again.

    Of those that began in the measured part and were completed in it; null if there is none. The SYN or the SYN/ACK
    was lost: each costs an initial timeout. Unfinished ones are not counted. Source: Braud 2016, figure 7-1 (response
    times with and without the loss of a SYN).
    """
    return _mean_where(view, pl.col("syn_retransmissions") > 0)


def completion_syn_kept_s(view: RunView) -> float | None:
    """Mean completion time of the finished transfers whose first SYN was answered, to compare with the others.

    As `completion_syn_lost_s`. Source: Braud 2016, figure 7-1.
    """
    return _mean_where(view, pl.col("syn_retransmissions") == 0)


def transfers(view: RunView) -> pl.DataFrame:
    """The finite transfers that began in the measured part.

    `group`, `congestion`, `size_bytes`, `syn_retransmissions`; `time_s`, how long it took or, if not `finished`
    by the end of the measured part, how long it had been under way.
    """
    finite = pl.col("size_bytes").is_not_null() | pl.col("completion_s").is_not_null()
    begun = pl.col("start_s").is_between(view.warmup_s, view.duration_s, closed="left")
    in_time = (pl.col("start_s") + pl.col("completion_s") <= view.duration_s).fill_null(value=False)
    found = view.flows.filter(finite, begun).with_columns(in_time.alias("finished"))
    so_far_s = view.duration_s - pl.col("start_s")
    time_s = pl.when("finished").then("completion_s").otherwise(so_far_s).alias("time_s")
    return found.select("group", "congestion", "size_bytes", "syn_retransmissions", time_s, "finished")


def watched(found: pl.DataFrame) -> tuple[Array, npt.NDArray[np.bool_]]:
    """What the Kaplan–Meier estimate takes: how long each transfer was watched, and whether it ended then."""
    return found["time_s"].to_numpy(), np.asarray(found["finished"].to_numpy(), dtype=bool)


def _completions_s(view: RunView) -> Array:
    times_s = view.flows["completion_s"].to_numpy()
    ends_s = view.starts_s + times_s
    return np.asarray(times_s[(ends_s >= view.warmup_s) & (ends_s <= view.duration_s)])


def _mean_where(view: RunView, chosen: pl.Expr) -> float | None:
    mean = view.once(transfers).filter("finished", chosen)["time_s"].mean()
    return float(mean) if isinstance(mean, (int, float)) else None


METRICS = (
    Metric(
        "completion_mean_s", "s", "Mean completion time", completion_mean_s, ranks=(14, 0, 4, 2), short="completion"
    ),
    Metric("completion_p95_s", "s", "95th percentile of the completion time", completion_p95_s, ranks=(15,)),
    Metric("unfinished", "", "Transfers not finished", unfinished, ranks=(16,)),
    Metric("unfinished_share", "share", "Share of the transfers not finished", unfinished_share),
    Metric("completion_km_mean_s", "s", "Mean completion time, unfinished counted", completion_km_mean_s, ranks=(17,)),
    Metric("completion_km_median_s", "s", "Median completion time, unfinished counted", completion_km_median_s),
    Metric("completion_syn_lost_s", "s", "Mean completion time with a SYN sent again", completion_syn_lost_s),
    Metric("completion_syn_kept_s", "s", "Mean completion time without", completion_syn_kept_s),
)
