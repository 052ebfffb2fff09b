/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What CUBIC and its relatives do alike: the epoch, Reno's window beside it, the reaction to loss.
 *
 * RFC 9438, counted like Linux 6.1 counts it: whole segments, beta in 1/1024. Times are those of TCP's own clock in
 * microseconds, not ticks, so a guest and a live kernel of any CONFIG_HZ count the same. There is no HyStart.
 * It is the arithmetic of the engine `packet` (congestion/cubic.rs), once more.
 */
#ifndef ACKCLOCK_CUBIC_H
#define ACKCLOCK_CUBIC_H

#include "environment.h"
#include "cubic_curve.h"

/* The cards' defaults. Whoever compiles for BPF gives values instead, as a BPF program has no parameters. */
#ifndef C_MICRO
#define C_MICRO 400000
#endif
#ifndef BETA_1024
#define BETA_1024 819
#endif
#ifndef FAST_CONVERGENCE
#define FAST_CONVERGENCE 1
#endif
#ifndef RENO_FRIENDLY
#define RENO_FRIENDLY 1
#endif
#ifndef RENO_CATCH_UP
#define RENO_CATCH_UP 0
#endif
#ifndef DELAYED_ACK_CORRECTION
#define DELAYED_ACK_CORRECTION 1
#endif

PARAMETER(uint, c_micro, C_MICRO, "steepness C of the curve, millionths of a segment per s^3");
PARAMETER(uint, beta_1024, BETA_1024, "share of the window that is kept at a loss, in 1/1024");
PARAMETER(bool, fast_convergence, FAST_CONVERGENCE, "aim lower after a loss below the window of the one before");
PARAMETER(bool, reno_friendly, RENO_FRIENDLY, "never less than Reno would have");
PARAMETER(bool, reno_catch_up, RENO_CATCH_UP, "Reno's window grows by one per RTT once it is what it was before the loss");
PARAMETER(bool, delayed_ack_correction, DELAYED_ACK_CORRECTION, "count acknowledged segments, not ACKs");

#define BETA_SCALE 1024
#define MIN_SSTHRESH 2
/* RTT samples this soon after the start of an epoch still show the queue of the last one. */
#define SETTLING_US 1000000

/* What a connection remembers. */
struct cubic {
	u64 start_us;		/* start of the epoch */
	u64 looked_us;		/* LinCubic's last look at the curve */
	u32 looked_cwnd;	/* the window then; 0: no look in this epoch */
	u32 per_increment;	/* acknowledged segments per increment */
	u32 w_max;		/* window at the last loss, or less by fast convergence; 0 before the first */
	u32 prior;		/* window at the last loss */
	u32 origin;		/* the curve's flat point */
	u32 k_ms;		/* from the start to the flat point */
	u32 w_est;		/* Reno's window */
	u32 w_est_credit;	/* acknowledged segments that it has not grown by yet */
	u32 min_rtt_us;		/* smallest since the last timeout; 0: none */
	bool in_epoch;
};

static inline bool parameters_make_sense(void)
{
	return c_micro >= 100 && c_micro <= 100000000 && beta_1024 > 0 && beta_1024 < BETA_SCALE;
}

/* Time since the start of the epoch. */
static inline u64 epoch_us(const struct cubic *cubic, u64 now_us)
{
	return now_us > cubic->start_us ? now_us - cubic->start_us : 0;
}

/* Puts `acked` segments to Reno's account; begins an epoch if there is none. */
static inline void account(struct cubic *cubic, u64 now_us, u32 cwnd, u32 acked)
{
	if (!cubic->in_epoch) {
		cubic->in_epoch = true;
		cubic->start_us = now_us;
		cubic->origin = at_least(cubic->w_max, cwnd);
		cubic->k_ms = curve_k_ms(cubic->origin - cwnd, c_micro);
		cubic->w_est = cwnd;
		cubic->w_est_credit = 0;
	}
	cubic->w_est_credit += acked;
}

/* Lets Reno's window grow by at most `most` segments, each for `price` acknowledged ones. */
static inline void buy(struct cubic *cubic, u64 price, u32 most)
{
	u64 steps;

	price = at_least(price, 1);
	steps = cubic->w_est_credit > 0 ? (cubic->w_est_credit - 1) / price : 0;
	steps = at_most(steps, most);
	cubic->w_est += steps;
	cubic->w_est_credit -= steps * price;
}

/* W_est (figure 4): 1/alpha is in whole eighths, and is 1 beyond the window before the loss if it is to catch up. */
static inline void grow_w_est(struct cubic *cubic, u32 cwnd)
{
	u32 windows_8 = 8 * (BETA_SCALE + beta_1024) / (3 * (BETA_SCALE - beta_1024));
	u64 price = (u64)cwnd * windows_8 / 8;

	if (!reno_catch_up) {
		buy(cubic, price, CURVE_ENDLESS);
		return;
	}
	if (cubic->w_est < cubic->prior)
		buy(cubic, price, cubic->prior - cubic->w_est);
	if (cubic->w_est >= cubic->prior)
		buy(cubic, cwnd, CURVE_ENDLESS);
}

/* The acknowledged segments that congestion avoidance has to deal with, after slow start had its share. */
static inline u32 left_by_slow_start(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!window_limited(tp))
		return 0;
	if (!delayed_ack_correction)
		acked = at_most(acked, 1);
	return tp->snd_cwnd < tp->snd_ssthresh ? tcp_slow_start(tp, acked) : acked;
}

static inline void forget_epoch(struct cubic *cubic)
{
	cubic->in_epoch = false;
	cubic->looked_cwnd = 0;
}

HOOK(void, init, struct sock *sk)
{
	struct cubic *cubic = inet_csk_ca(sk);

	forget_epoch(cubic);
	cubic->w_max = 0;
	cubic->prior = 0;
	cubic->min_rtt_us = 0;
	cubic->per_increment = 2;
}

/* A loss: the window that is kept. */
HOOK(u32, ssthresh, struct sock *sk)
{
	struct cubic *cubic = inet_csk_ca(sk);
	u64 cwnd = tcp_sk(sk)->snd_cwnd;

	if (fast_convergence && cwnd < cubic->w_max)
		cubic->w_max = cwnd * (BETA_SCALE + beta_1024) / (2 * BETA_SCALE);
	else
		cubic->w_max = cwnd;
	cubic->prior = cwnd;
	forget_epoch(cubic);
	return at_least(cwnd * beta_1024 / BETA_SCALE, MIN_SSTHRESH);
}

/* A timeout: all that was known of the path may be wrong. */
HOOK(void, set_state, struct sock *sk, u8 state)
{
	struct cubic *cubic = inet_csk_ca(sk);

	if (state != TCP_CA_Loss)
		return;
	forget_epoch(cubic);
	cubic->w_max = 0;
	cubic->min_rtt_us = 0;
}

/* The curve pauses while the application is idle. */
HOOK(void, cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct cubic *cubic = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (event == CA_EVENT_TX_START && cubic->in_epoch)
		cubic->start_us = at_most(cubic->start_us + idle_us(tp), tp->tcp_mstamp);
}

HOOK(void, pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct cubic *cubic = inet_csk_ca(sk);
	s32 rtt_us = sample->rtt_us;

	if (rtt_us < 0 || (cubic->in_epoch && epoch_us(cubic, tcp_sk(sk)->tcp_mstamp) < SETTLING_US))
		return;
	rtt_us = at_least(rtt_us, 1);
	if (!cubic->min_rtt_us || rtt_us < cubic->min_rtt_us)
		cubic->min_rtt_us = rtt_us;
}

HOOK(u32, undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

#endif
