/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two places where the same code runs: a module of a kernel (6.1 or newer, 64 bits), or a BPF program in a live
 * one. PARAMETER, HOOK and CONGESTION_CONTROL are what differs. A test that compiles the code for the host has its
 * own.
 */
#ifndef ACKCLOCK_ENVIRONMENT_H
#define ACKCLOCK_ENVIRONMENT_H

#if defined(__BPF__)

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

typedef unsigned int uint;

#define PARAMETER(type, name, value, about) const volatile type name = value

#define HOOK(type, name, ...) \
	SEC("struct_ops/" #name)  \
	type BPF_PROG(name, __VA_ARGS__)

/* Without a link: it stays until it is unregistered, and no file keeps it. */
#define CONGESTION_CONTROL(own, about)        \
	char LICENSE[] SEC("license") = "GPL";    \
	SEC(".struct_ops")                        \
	struct tcp_congestion_ops own = {         \
		.init = (void *)init,                 \
		.ssthresh = (void *)ssthresh,         \
		.cong_avoid = (void *)cong_avoid,     \
		.set_state = (void *)set_state,       \
		.cwnd_event = (void *)cwnd_event,     \
		.pkts_acked = (void *)pkts_acked,     \
		.undo_cwnd = (void *)undo_cwnd,       \
		.name = #own,                         \
	}

extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern unsigned int CONFIG_HZ __kconfig;

static inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline void *inet_csk_ca(const struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/* Whether the sender used its window; in slow start, half of it. */
static inline bool window_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Time since the connection last sent. */
static inline u64 idle_us(struct tcp_sock *tp)
{
	return (u64)((u32)bpf_jiffies64() - (u32)tp->lsndtime) * 1000000 / CONFIG_HZ;
}

#elif defined(__KERNEL__)

#include <linux/module.h>
#include <net/tcp.h>

#define PARAMETER(type, name, value, about) \
	static type name __read_mostly = value; \
	module_param(name, type, 0444);         \
	MODULE_PARM_DESC(name, about)

#define HOOK(type, name, ...) static type name(__VA_ARGS__)

#define CONGESTION_CONTROL(own, about)                                          \
	static struct tcp_congestion_ops own __read_mostly = {                      \
		.init = init,                                                           \
		.ssthresh = ssthresh,                                                   \
		.cong_avoid = cong_avoid,                                               \
		.set_state = set_state,                                                 \
		.cwnd_event = cwnd_event,                                               \
		.pkts_acked = pkts_acked,                                               \
		.undo_cwnd = undo_cwnd,                                                 \
		.owner = THIS_MODULE,                                                   \
		.name = #own,                                                           \
	};                                                                          \
	static int __init own##_register(void)                                      \
	{                                                                           \
		BUILD_BUG_ON(sizeof(struct cubic) > ICSK_CA_PRIV_SIZE);                 \
		return parameters_make_sense() ? tcp_register_congestion_control(&own)  \
					       : -EINVAL;                                           \
	}                                                                           \
	static void __exit own##_unregister(void)                                   \
	{                                                                           \
		tcp_unregister_congestion_control(&own);                                \
	}                                                                           \
	module_init(own##_register);                                                \
	module_exit(own##_unregister);                                              \
	MODULE_LICENSE("GPL");                                                      \
	MODULE_DESCRIPTION(about)

static inline bool window_limited(struct tcp_sock *tp)
{
	return tcp_is_cwnd_limited((struct sock *)tp);
}

static inline u64 idle_us(struct tcp_sock *tp)
{
	return (u64)(tcp_jiffies32 - tp->lsndtime) * USEC_PER_SEC / HZ;
}

#endif

#endif
