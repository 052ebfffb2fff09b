"""The default reward. Any function of a `StepResult` may take its place."""

from __future__ import annotations

import numpy as np

from ackclock.rl.measurements import StepResult

#: Weights of throughput (per packet/s), latency (per second) and loss (per fraction of packets).
THROUGHPUT, LATENCY, LOSS = 10.0, 1000.0, 2000.0


def aurora(result: StepResult) -> float:
    """Return 10 · throughput − 1000 · latency − 2000 · loss, the mean over the active flows; 0 without any.

    Throughput is in segments per second, latency is the mean RTT of the step in seconds, loss the fraction of the sent
    segments that were retransmissions. N. Jay, N. H. Rotman, P. B. Godfrey, M. Schapira, A. Tamar: A Deep Reinforcement
    Learning Perspective on Internet Congestion Control, ICML 2019, section 4.1. The paper counts packets that were
    sent and not acknowledged; a sender of TCP knows of those by its retransmissions. The weights were chosen for links
    of a few Mbit/s: at 100 times the rate, throughput outweighs all else, and a reward in other units is needed.
    """
    active = result.is_active
    if not active.any():
        return 0.0
    throughput_pps = result.delivered_p[active] / result.duration_s
    loss = result.retransmitted_p[active] / np.maximum(result.sent_p[active], 1)
    return float(np.mean(THROUGHPUT * throughput_pps - LATENCY * result.rtt_s[active] - LOSS * loss))
