"""Set-up of the single flow: one CUBIC flow, one link, one drop-tail buffer; and its epoch after a loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ackclock.theory.domains import POSITIVE, SHARE, Domain, OneOf, check, lower_bound, single

#: Growth of Reno's estimate: by `a` packets for each window of ACKs, or as the print has it, W1 + a t / R(t).
Growth: TypeAlias = Literal["acks", "rtt"]

#: Quantity that is a whole number of packets: nothing; the window at which a packet is lost; or the window itself.
Rounding: TypeAlias = Literal["nothing", "loss", "window"]

#: When the sender learns of a loss: at once, at the end of the round (slots of an RTT), or an RTT later.
LossDetection: TypeAlias = Literal["at_once", "next_round", "rtt_later"]

#: Domains of a flow's set-up.
DOMAINS: Mapping[str, Domain] = {
    **dict.fromkeys(("capacity_pps", "rtt_s", "c", "packets_per_ack"), single(POSITIVE)),
    "buffer_p": single(lower_bound(0)),
    "beta": single(SHARE),
    "growth": OneOf(get_args(Growth)),
    "rounding": OneOf(get_args(Rounding)),
    "loss_detection": OneOf(get_args(LossDetection)),
}

#: Two windows nearer than this, as a share, are the same: no fast convergence because of rounding errors.
SAME = 1e-9


@dataclass(frozen=True, slots=True)
class SingleFlow:
    """One endless CUBIC flow on a link with a drop-tail buffer (Belhareth 2014, section 2.3, table 2.1).

    `capacity_pps` C in packets/s, `rtt_s` τ without queue, `buffer_p` B in packets, without the one in transmission.
    `beta` is the share given up at a loss, `c` CUBIC's constant in packets/s³, `packets_per_ack` b (2 if every second
    packet is acknowledged and the sender counts ACKs).
    """

    capacity_pps: float
    rtt_s: float
    buffer_p: float
    beta: float = 0.2
    c: float = 0.4
    packets_per_ack: float = 1.0
    fast_convergence: bool = True
    growth: Growth = "acks"
    rounding: Rounding = "nothing"
    loss_detection: LossDetection = "at_once"

    def __post_init__(self) -> None:
        """Raise `InputError` for an invalid set-up."""
        check(self, DOMAINS)

    @property
    def pipe_p(self) -> float:
        """Return Cτ, the packets that the path holds without a queue."""
        return self.capacity_pps * self.rtt_s

    @property
    def full_p(self) -> float:
        """Return Cτ + B + 1: path, buffer, and the packet in transmission; W_E in table 2.4."""
        return self.pipe_p + self.buffer_p + 1

    @property
    def loss_window(self) -> float:
        """Return the window at which a packet is lost: W_E, or the first whole number of packets above."""
        return self.full_p if self.rounding == "nothing" else math.floor(self.full_p * (1 + SAME)) + 1.0

    @property
    def growth_p(self) -> float:
        """Return the growth a = 3β / (b (2 − β)), packets for each window of ACKs in TCP mode (equation 2.14)."""
        return 3 * self.beta / (self.packets_per_ack * (2 - self.beta))


@dataclass(frozen=True, slots=True)
class Epoch:
    """The state after a loss: the window W1, and the plateau of the cubic."""

    start: float
    plateau: float

    def to_plateau_s(self, c: float) -> float:
        """Return V, the time to the plateau: ∛((plateau − W1) / c) (equations 2.12 and 2.13)."""
        return math.cbrt((self.plateau - self.start) / c)


def after_loss(flow: SingleFlow, window: float, last_plateau: float) -> Epoch:
    """Return the epoch after a loss detected at `window`, whose cubic aimed at `last_plateau`.

    If the window has not come up to that, fast convergence lowers the plateau to (1 − β/2) W (section 2.4.1.1).
    """
    shrinking = flow.fast_convergence and window < last_plateau * (1 - SAME)
    plateau = (1 - flow.beta / 2) * window if shrinking else window
    kept = (1 - flow.beta) * window
    if flow.rounding == "window":
        return Epoch(max(1.0, float(math.floor(kept * (1 + SAME)))), float(math.floor(plateau * (1 + SAME))))
    return Epoch(kept, plateau)
