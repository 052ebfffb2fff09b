"""Quality of real-time media: delay of frames, and freezes.

The receiver displays a frame when all its packets have arrived, unless a later frame was displayed before. The rate
and the loss of the packets are `udp_goodput_bps` and `udp_loss_rate`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ackclock.metrics.metric import Metric
from ackclock.metrics.view import Array, RunView

#: A freeze is an interval between frames of three times their average, or this much longer.
FREEZE_FACTOR, FREEZE_S = 3.0, 0.15

#: Frames over which the average interval is taken.
AVERAGED = 30


def frame_delay_mean_s(view: RunView) -> float | None:
    """Mean delay of the media frames that were displayed in the measured part, all flows' frames alike.

    From the capture of a frame to the arrival of its last packet: the time in the sender's pacer, queues, transmissions
    and propagation. Source: RFC 8868 section 3 (packet delay, measured here of whole frames).
    """
    return view.measured("frames").mean("delay_s")


def frame_delay_p95_s(view: RunView) -> float | None:
    """95th percentile of the same delays of frames. Source: RFC 8868 section 3."""
    return view.measured("frames").quantile("delay_s", 0.95)


def freezes(view: RunView) -> float | None:
    """Freezes of the video in the measured part, the mean over the media flows.

    A freeze is an interval between two displayed frames of at least max(3 δ, δ + 150 ms), where δ is the average
    interval of the 30 frames before, or of fewer at the beginning. Source: W3C webrtc-stats (freezeCount). Unlike
    there, the time from the last frame to the end of the run is an interval, too, so that a video that never comes
    back counts.
    """
    return _mean([float(frozen_s.size) for frozen_s in _freezes_s(view)])


def freeze_share(view: RunView) -> float | None:
    """Share of the measured part in which the video was frozen, the mean over the media flows.

    The sum of the intervals that `freezes` counts. Source: W3C webrtc-stats (totalFreezesDuration).
    """
    return _mean([float(frozen_s.sum()) / view.measured_s for frozen_s in _freezes_s(view)])


def frozen_s(times_s: Array) -> Array:
    """Return the intervals between frames displayed at these times that are freezes, in s."""
    intervals_s = np.diff(times_s)
    sums_s = np.concatenate([[0.0], np.cumsum(intervals_s)])
    last = np.arange(intervals_s.size)
    first = np.maximum(last - AVERAGED, 0)
    is_known = last > first
    average_s = np.where(is_known, (sums_s[last] - sums_s[first]) / np.maximum(last - first, 1), np.inf)
    return np.asarray(intervals_s[intervals_s >= np.maximum(FREEZE_FACTOR * average_s, average_s + FREEZE_S)])


def _freezes_s(view: RunView) -> Iterator[Array]:
    """Yield the freezes of each flow that has ever displayed a frame."""
    flows = np.unique(view.rows("frames")["flow"])
    frames = view.measured("frames")
    numbers, times_s = frames["flow"], frames["time_s"]
    for flow in flows:
        own_s = np.sort(times_s[numbers == flow])
        yield frozen_s(np.append(own_s, _end_s(view, int(flow)))) if own_s.size else np.array([view.measured_s])


def _end_s(view: RunView, flow: int) -> float:
    """Return when the flow's frames end: at its stop, or with the measured part."""
    number = flow - len(view.plan.flows)
    stops_s = [source.stop_s for source in view.plan.datagrams]
    stop_s = stops_s[number] if 0 <= number < len(stops_s) else None
    return view.duration_s if stop_s is None else min(stop_s, view.duration_s)


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


METRICS = (
    Metric("frame_delay_mean_s", "s", "Mean delay of media frames", frame_delay_mean_s),
    Metric("frame_delay_p95_s", "s", "95th percentile of the delay of media frames", frame_delay_p95_s, ranks=(18,)),
    Metric("freezes", "", "Freezes of the video", freezes, ranks=(19,)),
    Metric("freeze_share", "share", "Time in which the video was frozen", freeze_share),
)
