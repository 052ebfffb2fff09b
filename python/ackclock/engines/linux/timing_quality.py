"""Timing quality of a run in real time: whether the kernel kept up.

The rate is held if a link that always has packets sends as fast as it should; the samples are in time if each is taken
before the next is due. How late they were is measured inside, by the kernel's clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from ackclock.dataset.tables import Column
from ackclock.plan import Plan

#: Below this share of its rate, a busy link was held up by the machine.
MIN_SHARE = 0.98

#: Samples of a busy link that are required to estimate its rate.
MIN_SAMPLES = 10

Tables: TypeAlias = Mapping[str, Mapping[str, Column]]


def measured(plan: Plan, found: Tables) -> dict[str, Any]:
    """The links' rates that were held, as shares of the rates asked for, and how late the samples were, in seconds.

    A share is the mean utilisation over the samples that found packets waiting, and so did the sample before; None
    where there are too few of them. A sample whose time had passed before the one before was taken is left out.
    """
    samples, kernel = found.get("queue_samples", {}), found["kernel"]
    return {
        "shares": {link.name: _share(samples, number) for number, link in enumerate(plan.links)},
        "late_mean_s": float(kernel["late_mean_s"][0]),
        "late_max_s": float(kernel["late_max_s"][0]),
        "skipped_samples": int(kernel["skipped_samples"][0]),
    }


def doubts(plan: Plan, held: Mapping[str, Any]) -> Iterator[str]:
    """Yield the warnings about a run: a line each."""
    for name, share in held["shares"].items():
        if share is not None and share < MIN_SHARE:
            yield f'this machine could not keep up: the link "{name}" held {100 * share:.1f} % of its rate while busy'
    late_s, interval_s = held["late_max_s"], plan.record.interval_s
    if late_s > interval_s:
        yield f"this machine could not keep up: a sample came {1000 * late_s:.3g} ms late, of {1000 * interval_s:g} ms"


def squeezed(memory_pressures: int) -> Iterator[str]:
    """Yield a warning if TCP as a whole exceeded the kernel's memory limit."""
    if memory_pressures:
        yield (
            f"TCP ran out of memory (net.ipv4.tcp_mem) {memory_pressures} times: "
            "the kernel then closes receivers' windows, so that it is no longer only the network that decides; "
            "`[linux] memory` gives a guest more"
        )


def uncaptured(lost_p: int) -> Iterator[str]:
    """Yield a warning if a packet capture dropped packets."""
    if lost_p:
        yield f"the packet capture lacks {lost_p} packets: too many came within 10 ms"


def _share(samples: Mapping[str, Column], link: int) -> float | None:
    if not samples:
        return None
    rows = np.asarray(samples["link"]) == link
    waiting = np.asarray(samples["backlog_p"], dtype=np.float64)[rows] > 0
    busy = waiting[1:] & waiting[:-1]
    if busy.sum() < MIN_SAMPLES:
        return None
    return float(np.asarray(samples["utilisation"], dtype=np.float64)[rows][1:][busy].mean())
