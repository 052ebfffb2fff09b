// SPDX-License-Identifier: GPL-2.0
/*
 * $title as a BPF program of the kernel that is running, of Linux 6.1 or newer:
 *
 *     sudo ackclock run scenarios/$name.toml --engine linux --kernel live --module modules/$name.bpf.c
 *
 * A parameter of its card, under [linux.parameters], is defined when it is compiled.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#ifndef BETA_1024
#define BETA_1024 512 /* the share of the window that a loss leaves, in 1/1024 */
#endif

char LICENSE[] SEC("license") = "GPL";

extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* Whether the sender used its window; in slow start, half of it. */
static inline bool window_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

SEC("struct_ops/${name}_ssthresh")
u32 BPF_PROG(${name}_ssthresh, struct sock *sk)
{
	u32 left = (u64)((struct tcp_sock *)sk)->snd_cwnd * BETA_1024 >> 10;

	return left > 2 ? left : 2;
}

SEC("struct_ops/${name}_cong_avoid")
void BPF_PROG(${name}_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (!window_limited(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh)
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

SEC("struct_ops/${name}_undo_cwnd")
u32 BPF_PROG(${name}_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops ${name}_ops = {
	.ssthresh = (void *)${name}_ssthresh,
	.cong_avoid = (void *)${name}_cong_avoid,
	.undo_cwnd = (void *)${name}_undo_cwnd,
	.name = "$name",
};
