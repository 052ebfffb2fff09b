"""The pendulum: two antiparallel New Reno flows through the two queues of an asymmetric line.

    from ackclock.theory import pendulum

    down = pendulum.side(10e6, 0.042, queue_bytes=150e3, packet_bytes=1508)
    up = pendulum.side(2e6, 0.042, queue_bytes=36e3, packet_bytes=1508)
    way = pendulum.follow(down, up, 2000)
    way.window_ratio(300, 2000)      # 4.26: what figure 4-4 of the thesis shows
    way.tilts()                      # when the backlog moved without a loss, and to which queue

Source: T. Braud, TCP sur lien asymétrique, PhD thesis, Université Grenoble Alpes, 2016, chapter 4.

The states of the machine (figure 4-3):

    neither queue ──a window fills its link──▶ fill(i) ──w*_i/C_i = w*_j/C_j──▶ fill(j)     (tilt, no loss)
          ▲                                      │
          └───── w*_i, w*_j ≤ 0 ── loss: w_i / 2 ┘ ── the greater w*/C ──▶ fill(i) or fill(j)

where w*_x = w_x − C_x τ_x is what a flow has in the queues.

Our deviations from the print, each checked against numerical integration:

- Windows and queues are in packets of the size m by which a window grows, not in bytes.
- Both flows may have their own τ; equations 4.10 to 4.13 then have a logarithm (`Filling.other`).
- Equation 4.12 lacks a factor C_i. Equation 4.19 is wrong; `Filling.overflow` solves the condition 4.17 instead.
- Equation 4.6 prints the rate of ACKs of a full link as C / (b τ); it is C / (b m).
- The Note of section 4.3 has the direction of tilts reversed: with equal τ the backlog goes from the down to the up
  queue, since w_u / C_u grows faster.
- A tilt takes no time, as in the simplifications of section 4.3 (equations 4.14 to 4.16 are not used).
"""

from __future__ import annotations

from ackclock.theory.pendulum.filling import MIN_P, Filling, Side, side
from ackclock.theory.pendulum.machine import Loss, Stretch, Tilt, stretches
from ackclock.theory.pendulum.trajectory import Trajectory, follow

__all__ = ["MIN_P", "Filling", "Loss", "Side", "Stretch", "Tilt", "Trajectory", "follow", "side", "stretches"]
