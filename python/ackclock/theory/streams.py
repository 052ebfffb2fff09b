"""Parallel streams: E. Altman, D. Barman, B. Tuffin, M. Vojnovic: Parallel TCP Sockets, INFOCOM 2006."""

from __future__ import annotations

from ackclock.theory.array_types import Number
from ackclock.theory.domains import POSITIVE, SHARE, checked, lower_bound


@checked(streams=lower_bound(1), capacity_bps=POSITIVE, beta=SHARE)
def altman(streams: Number, capacity_bps: float, beta: float) -> Number:
    """Return the aggregate rate of N parallel streams, C (1 − 1/(1 + N (1 + β)/(1 − β))), in bit/s.

    β is the share of the window that is kept at a loss. The link has no buffer. It is full when a loss happens, one of
    the streams then reduces, and all rates grow at one pace; a single stream has (1 + β)/2 of the link.
    """
    return capacity_bps * (1 - 1 / (1 + streams * (1 + beta) / (1 - beta)))
