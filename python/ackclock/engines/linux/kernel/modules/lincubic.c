// SPDX-License-Identifier: GPL-2.0
/*
 * LinCubic: CUBIC that grows by one segment per round trip near the window of the last loss.
 *
 * S. Belhareth: Joint network and system performance for cloud computing, PhD thesis, Université Nice Sophia
 * Antipolis, 2014, section 5.6. Within `distance` of W_max the window grows like Reno's, elsewhere like CUBIC's.
 * Where the thesis is silent: W_max is the flat point of the curve, lowered by fast convergence; the curve's time runs
 * on while the window grows linearly, and Reno's window is a lower bound there too.
 */
#include "cubic.h"

#ifndef TICK_US
#define TICK_US 4000
#endif
#ifndef DISTANCE
#define DISTANCE 2
#endif

PARAMETER(uint, tick_us, TICK_US, "look at the curve once in this time at most; 0: with each ACK");
PARAMETER(uint, distance, DISTANCE, "the window grows by one per RTT as near to W_max as this, in segments");

/* Time after which the curve is looked at though the window is the same. */
#define STALE_US 31250
/* Acknowledged segments per increment: at least so that the window grows by half per round trip, ... */
#define MIN_PER_INCREMENT 2
/* ... before the first loss at most so that it grows by 5 %, ... */
#define MAX_PER_INCREMENT_UNKNOWN 20
/* ... and this many windows where the curve does not ask for more. */
#define PLATEAU_WINDOWS 100

static inline bool near_w_max(u32 cwnd, u32 w_max)
{
	u32 apart = cwnd > w_max ? cwnd - w_max : w_max - cwnd;

	return w_max > 0 && apart <= distance;
}

/* Acknowledged segments per increment that lead to the curve one round trip from now. */
static inline u32 curve_per_increment(const struct cubic *cubic, u64 now_us, u32 cwnd)
{
	u64 t_ms = (epoch_us(cubic, now_us) + cubic->min_rtt_us) / 1000;
	u32 target = curve_towards_flat(t_ms, cubic->k_ms, cubic->origin, c_micro);
	u32 per_increment = at_most(per_increment_to(target, cwnd), (u64)cwnd * PLATEAU_WINDOWS);

	if (near_w_max(cwnd, cubic->w_max))
		per_increment = cwnd;
	return cubic->w_max ? per_increment : at_most(per_increment, MAX_PER_INCREMENT_UNKNOWN);
}

static inline void look(struct cubic *cubic, u64 now_us, u32 cwnd)
{
	u64 since_us = now_us - cubic->looked_us;
	bool looked = tick_us && cubic->looked_cwnd;

	if (looked && cubic->looked_cwnd == cwnd && since_us <= STALE_US)
		return;
	if (!looked || since_us >= tick_us) {
		cubic->per_increment = curve_per_increment(cubic, now_us, cwnd);
		cubic->looked_cwnd = cwnd;
		cubic->looked_us = now_us;
	}
	if (reno_friendly) {
		grow_w_est(cubic, cwnd);
		cubic->per_increment = at_most(cubic->per_increment, per_increment_to(cubic->w_est, cwnd));
	}
	cubic->per_increment = at_least(cubic->per_increment, MIN_PER_INCREMENT);
}

HOOK(void, cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct cubic *cubic = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	acked = left_by_slow_start(sk, acked);
	if (!acked)
		return;
	account(cubic, tp->tcp_mstamp, tp->snd_cwnd, acked);
	look(cubic, tp->tcp_mstamp, tp->snd_cwnd);
	tcp_cong_avoid_ai(tp, cubic->per_increment, acked);
}

CONGESTION_CONTROL(lincubic, "CUBIC that grows linearly near the window of the last loss");
