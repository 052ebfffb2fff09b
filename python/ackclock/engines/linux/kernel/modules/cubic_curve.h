/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CUBIC's curve in whole numbers (RFC 9438 section 4.2).
 *
 * Windows are in segments, times of the curve in milliseconds, C in millionths of a segment per s³. Nothing
 * overflows for windows below 2^24, C from 0.0001 to 100 (the cards' range) and times up to CURVE_LONGEST_MS:
 * longer ones are cut to it. It needs the types u32 and u64, and nothing else of a kernel.
 */
#ifndef ACKCLOCK_CUBIC_CURVE_H
#define ACKCLOCK_CUBIC_CURVE_H

/* 35 minutes; its cube fits in 63 bits. */
#define CURVE_LONGEST_MS (1U << 21)
#define CURVE_WIDEST (1U << 24)
#define CURVE_NANO 1000000000ULL
#define CURVE_ENDLESS (~0U)

static inline u64 at_most(u64 value, u64 bound)
{
	return value < bound ? value : bound;
}

static inline u64 at_least(u64 value, u64 bound)
{
	return value > bound ? value : bound;
}

/*
 * The cube root, rounded down, of at most the cube of CURVE_LONGEST_MS. Newton's steps from above shrink until
 * they are there; far off each takes a third, so 48 are enough.
 */
static inline u32 cube_root(u64 cube)
{
	u64 root = CURVE_LONGEST_MS, next;
	int step;

	if (!cube)
		return 0;
	for (step = 0; step < 48; step++) {
		next = (2 * root + cube / (root * root)) / 3;
		if (next >= root)
			break;
		root = next;
	}
	return root;
}

/* K: from the start of the curve, `below` segments under its flat point, to that point (figure 2). */
static inline u32 curve_k_ms(u32 below, u32 c_micro)
{
	/* 10^15 is a s³ in ms³ and a segment in its millionths; the last thousand waits, or it would not fit. */
	u64 cube = at_most(below, CURVE_WIDEST) * 1000000000000ULL / c_micro;
	u64 longest = (u64)CURVE_LONGEST_MS * CURVE_LONGEST_MS * CURVE_LONGEST_MS / 1000;

	return cube_root(at_most(cube, longest) * 1000);
}

/* C · away³, in 10^-9 segments. */
static inline u64 curve_away(u64 away_ms, u32 c_micro)
{
	u64 per_s2, per_s;

	away_ms = at_most(away_ms, CURVE_LONGEST_MS);
	per_s2 = c_micro * away_ms / 1000;
	per_s = per_s2 * away_ms / 1000;
	return at_most(per_s, 1ULL << 42) * away_ms;
}

/* W_cubic(t) rounded towards the flat point `origin` (figure 1). */
static inline u32 curve_towards_flat(u64 t_ms, u32 k_ms, u32 origin, u32 c_micro)
{
	u64 away;

	if (t_ms < k_ms) {
		away = curve_away(k_ms - t_ms, c_micro) / CURVE_NANO;
		return origin - at_most(away, origin);
	}
	away = curve_away(t_ms - k_ms, c_micro) / CURVE_NANO;
	return at_most(origin + away, CURVE_ENDLESS);
}

/* W_cubic(t) rounded down. */
static inline u32 curve_down(u64 t_ms, u32 k_ms, u32 origin, u32 c_micro)
{
	u64 away;

	if (t_ms >= k_ms)
		return curve_towards_flat(t_ms, k_ms, origin, c_micro);
	away = (curve_away(k_ms - t_ms, c_micro) + CURVE_NANO - 1) / CURVE_NANO;
	return origin - at_most(away, origin);
}

/* Acknowledged segments per increment that lead from `cwnd` to `target` within a window; endless if it is not above. */
static inline u32 per_increment_to(u32 target, u32 cwnd)
{
	return target > cwnd ? cwnd / (target - cwnd) : CURVE_ENDLESS;
}

#endif
