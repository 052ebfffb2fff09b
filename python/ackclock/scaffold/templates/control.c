// SPDX-License-Identifier: GPL-2.0
/*
 * $title as a module of a guest's kernel:
 *
 *     ackclock run scenarios/$name.toml --engine linux --module modules/$name.c
 *
 * Its card says how a parameter of a scenario becomes one of the module, under [linux.parameters].
 */
#include <linux/module.h>
#include <net/tcp.h>

static uint beta_1024 __read_mostly = 512;
module_param(beta_1024, uint, 0444);
MODULE_PARM_DESC(beta_1024, "the share of the window that a loss leaves, in 1/1024");

/* The window that is left after a loss. */
static u32 ${name}_ssthresh(struct sock *sk)
{
	return max_t(u32, (u64)tcp_snd_cwnd(tcp_sk(sk)) * beta_1024 >> 10, 2);
}

/* An acknowledgement of `acked` segments. */
static void ${name}_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
}

static struct tcp_congestion_ops ${name}_ops __read_mostly = {
	.ssthresh = ${name}_ssthresh,
	.cong_avoid = ${name}_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "$name",
};

static int __init ${name}_register(void)
{
	return tcp_register_congestion_control(&${name}_ops);
}

static void __exit ${name}_unregister(void)
{
	tcp_unregister_congestion_control(&${name}_ops);
}

module_init(${name}_register);
module_exit(${name}_unregister);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("$title");
