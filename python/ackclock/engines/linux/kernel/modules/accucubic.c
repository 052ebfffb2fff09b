// SPDX-License-Identifier: GPL-2.0
/*
 * AccuCubic: CUBIC whose window is on the curve at each moment.
 *
 * S. Belhareth: Joint network and system performance for cloud computing, PhD thesis, Université Nice Sophia
 * Antipolis, 2014, sections 5.5.2 and 5.6. Linux spreads increments so that the window would be on the curve one round
 * trip later, and is ahead of it where the RTT is long. Here it is the curve, rounded down, at each ACK. Where the
 * thesis is silent: it never falls in an epoch, and an ACK raises it by no more than it acknowledges.
 */
#include "cubic.h"

HOOK(void, cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct cubic *cubic = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd, target;

	acked = left_by_slow_start(sk, acked);
	if (!acked)
		return;
	cwnd = tp->snd_cwnd;
	account(cubic, tp->tcp_mstamp, cwnd, acked);
	target = curve_down(epoch_us(cubic, tp->tcp_mstamp) / 1000, cubic->k_ms, cubic->origin, c_micro);
	if (reno_friendly) {
		grow_w_est(cubic, cwnd);
		target = at_least(target, cubic->w_est);
	}
	if (target > cwnd)
		tp->snd_cwnd = at_most(at_most(target, (u64)cwnd + acked), tp->snd_cwnd_clamp);
}

CONGESTION_CONTROL(accucubic, "CUBIC whose window is on the curve at each moment");
