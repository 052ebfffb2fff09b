// SPDX-License-Identifier: GPL-2.0
/* One of the kernel's congestion controls (MODULE) on the host: a connection without a network, driven by a test. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef unsigned int uint;

#define PARAMETER(type, name, value, about) type name = value
#define HOOK(type, name, ...) static type name(__VA_ARGS__)
#define CONGESTION_CONTROL(own, about) enum { registered }

enum { TCP_CA_Loss = 4 };
enum tcp_ca_event { CA_EVENT_TX_START };
struct ack_sample { s32 rtt_us; };
struct tcp_sock { u32 snd_cwnd, snd_ssthresh, snd_cwnd_cnt, snd_cwnd_clamp; u64 tcp_mstamp, idle, private[13]; bool full; };
struct sock { struct tcp_sock tcp; };

static struct tcp_sock *tcp_sk(struct sock *sk) { return &sk->tcp; }
static void *inet_csk_ca(struct sock *sk) { return sk->tcp.private; }
static bool window_limited(struct tcp_sock *tp) { return tp->full; }
static u64 idle_us(struct tcp_sock *tp) { return tp->idle; }
static u32 tcp_reno_undo_cwnd(struct sock *sk) { return sk->tcp.snd_cwnd; }

/* RFC 5681 section 3.1; what is left over goes to congestion avoidance. */
static u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 room = tp->snd_ssthresh - tp->snd_cwnd, used = acked < room ? acked : room;

	tp->snd_cwnd += used;
	return acked - used;
}

/* A segment for each `price` acknowledged ones; what was saved while the price was higher buys one. */
static void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 price, u32 acked)
{
	if (tp->snd_cwnd_cnt >= price) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	tp->snd_cwnd += tp->snd_cwnd_cnt / price;
	tp->snd_cwnd_cnt %= price;
}

#include MODULE

_Static_assert(sizeof(struct cubic) <= sizeof(((struct tcp_sock *)0)->private), "the kernel has 104 bytes for it");

static struct sock connection;

void start(u32 cwnd)
{
	memset(&connection, 0, sizeof(connection));
	connection.tcp.snd_cwnd = cwnd;
	connection.tcp.snd_ssthresh = 0x7fffffff;
	connection.tcp.snd_cwnd_clamp = ~0U;
	connection.tcp.full = true;
	init(&connection);
}

u32 window(void) { return connection.tcp.snd_cwnd; }

u32 threshold(void) { return connection.tcp.snd_ssthresh; }

u32 acknowledge(u64 now_us, u32 acked, s32 rtt_us, bool full)
{
	struct ack_sample sample = { .rtt_us = rtt_us };

	connection.tcp.tcp_mstamp = now_us;
	connection.tcp.full = full;
	pkts_acked(&connection, &sample);
	cong_avoid(&connection, 0, acked);
	return window();
}

/* A loss that fast recovery repairs at once. */
u32 lose(void)
{
	connection.tcp.snd_ssthresh = ssthresh(&connection);
	connection.tcp.snd_cwnd = connection.tcp.snd_ssthresh;
	connection.tcp.snd_cwnd_cnt = 0;
	return window();
}

void time_out(void)
{
	connection.tcp.snd_ssthresh = ssthresh(&connection);
	connection.tcp.snd_cwnd = 1;
	connection.tcp.snd_cwnd_cnt = 0;
	set_state(&connection, TCP_CA_Loss);
}

/* Data again, after nothing was under way for a while. */
void resume(u64 now_us, u64 idle)
{
	connection.tcp.tcp_mstamp = now_us;
	connection.tcp.idle = idle;
	cwnd_event(&connection, CA_EVENT_TX_START);
}

u32 root(u64 cube) { return cube_root(cube); }

u32 k_ms(u32 below, u32 c) { return curve_k_ms(below, c); }

u32 curve(u64 t_ms, u32 k, u32 origin, u32 c, bool down)
{
	return down ? curve_down(t_ms, k, origin, c) : curve_towards_flat(t_ms, k, origin, c);
}

bool sensible(void) { return parameters_make_sense() && undo_cwnd(&connection); }
