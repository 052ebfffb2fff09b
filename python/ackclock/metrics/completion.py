"""How long finite transfers took: RFC 5166 section 2.1.1 (per-flow completion times)."""

from __future__ import annotations

import numpy as np

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import Array, RunView


def completion_mean_s(view: RunView) -> float | None:
    """Mean completion time of the transfers that were completed in the measured part.

    From the SYN to the acknowledgement of the last byte at the sender; null if no transfer was completed. Transfers
    that were still under way at the end are not counted. Source: RFC 5166 section 2.1.1.
    """
    times_s = view.once(_completions_s)
    return float(times_s.mean()) if times_s.size else None


def completion_p95_s(view: RunView) -> float | None:
    """95th percentile of the completion times of the same transfers. Source: RFC 5166 section 2.1.1."""
    times_s = view.once(_completions_s)
    return float(np.quantile(times_s, 0.95)) if times_s.size else None


def _completions_s(view: RunView) -> Array:
    times_s = view.flows["completion_s"].to_numpy()
    ends_s = view.starts_s + times_s
    return np.asarray(times_s[(ends_s >= view.warmup_s) & (ends_s <= view.duration_s)])


METRICS = (
    Metric("completion_mean_s", "s", "Mean completion time", completion_mean_s),
    Metric("completion_p95_s", "s", "95th percentile of the completion time", completion_p95_s),
)
