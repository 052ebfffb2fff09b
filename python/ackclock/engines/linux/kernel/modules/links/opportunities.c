// SPDX-License-Identifier: GPL-2.0
/*
 * Delivery opportunities: a queue discipline that lets so many bytes out at each of given times, again and again.
 *
 * The same as the packet engine's (crates/ackclock-sim/src/link/opportunities.rs), to the byte: what no packet uses
 * is lost. Small packets share one opportunity; of a packet that is larger than what is left, the rest waits for the
 * next, and the packet leaves with its last byte. It has then left the queue below.
 *
 * Our deviations: packets that leave together have the same time here, and there a picosecond between them. A packet
 * that comes at the very instant of an opportunity finds it lost if the timer's work was done before it. Where the timer
 * is late, what was waiting leaves late, but loses no opportunity.
 *
 * For each link of the parameter link=NUMBER,NUMBER,… there is a discipline of its own, opportunityNUMBER, with one
 * class, under which the queue is. Before a run begins, the parameters below /sys/module are written: trace, as often as
 * need be, since what is written at once has less than 4 KiB, and then zero_ns. Before zero_ns is given nothing leaves.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <net/pkt_sched.h>

#define MOST_LINKS 256

/* A link's opportunities, from zero_ns on, and the discipline that has them. */
struct trace {
	struct Qdisc_ops ops;
	u64 period_ns;
	u64 *at_ns;
	u32 bytes;
	u32 count;
	u32 room;
};

static unsigned int link[MOST_LINKS];
static unsigned int links;
module_param_array(link, uint, &links, 0444);
MODULE_PARM_DESC(link, "the numbers of the links that have opportunities");

static unsigned long long zero_ns;
module_param(zero_ns, ullong, 0200);
MODULE_PARM_DESC(zero_ns, "when the traces begin, by the monotonic clock");

static struct trace traces[MOST_LINKS];

struct opportunities {
	struct Qdisc *below;
	struct qdisc_watchdog watchdog;
	/* Whether no packet has waited, so that what there was is lost. */
	bool idle;
	/* The next one that has not been begun: its place in the trace, and when this turn of the trace begins. */
	u32 place;
	u64 turn_ns;
	/* When the one is, or was, that was begun last, and what is left of it. */
	u64 open_ns;
	u32 left;
	/* A packet that was let through and has not left, and when it does. */
	struct sk_buff *passing;
	u64 due_ns;
};

static const struct trace *trace_of(const struct Qdisc *sch)
{
	return container_of(sch->ops, struct trace, ops);
}

static u64 next_ns(const struct trace *trace, const struct opportunities *q)
{
	return zero_ns + q->turn_ns + trace->at_ns[q->place];
}

static void advance(const struct trace *trace, struct opportunities *q)
{
	if (++q->place == trace->count) {
		q->place = 0;
		q->turn_ns += trace->period_ns;
	}
}

/* What no packet has used is lost. */
static void lose(const struct trace *trace, struct opportunities *q, u64 now_ns)
{
	if (q->open_ns < now_ns)
		q->left = 0;
	while (next_ns(trace, q) < now_ns)
		advance(trace, q);
	q->idle = false;
}

/* When a packet may be let through: at the opportunity that is open or comes next. */
static u64 ready_ns(const struct trace *trace, const struct opportunities *q)
{
	return q->left ? q->open_ns : next_ns(trace, q);
}

/* Lets bytes through at an opportunity; they leave as soon as there was room for all of them. */
static u64 passed_ns(const struct trace *trace, struct opportunities *q, u32 bytes)
{
	for (;;) {
		u32 used;

		if (!q->left) {
			q->open_ns = next_ns(trace, q);
			q->left = trace->bytes;
			advance(trace, q);
		}
		used = min(bytes, q->left);
		q->left -= used;
		bytes -= used;
		if (!bytes)
			return q->open_ns;
	}
}

static int opportunities_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct opportunities *q = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);
	int verdict = qdisc_enqueue(skb, q->below, to_free);

	if (verdict == NET_XMIT_SUCCESS) {
		sch->qstats.backlog += bytes;
		sch->q.qlen++;
	} else if (net_xmit_drop_count(verdict)) {
		qdisc_qstats_drop(sch);
	}
	return verdict;
}

static struct sk_buff *opportunities_dequeue(struct Qdisc *sch)
{
	const struct trace *trace = trace_of(sch);
	struct opportunities *q = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns();
	struct sk_buff *skb;

	if (!zero_ns || !trace->count || !sch->q.qlen)
		return NULL;
	if (q->idle)
		lose(trace, q, now_ns);
	if (!q->passing) {
		q->due_ns = ready_ns(trace, q);
		if (q->due_ns <= now_ns)
			q->passing = q->below->dequeue(q->below);
		if (q->passing)
			q->due_ns = passed_ns(trace, q, qdisc_pkt_len(q->passing));
	}
	if (!q->passing && q->due_ns <= now_ns) {
		q->idle = true;
		return NULL;
	}
	if (q->due_ns > now_ns) {
		qdisc_watchdog_schedule_ns(&q->watchdog, q->due_ns);
		return NULL;
	}
	skb = q->passing;
	q->passing = NULL;
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	qdisc_bstats_update(sch, skb);
	q->idle = !sch->q.qlen;
	return skb;
}

static int opportunities_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct opportunities *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->below = &noop_qdisc;
	q->idle = true;
	return 0;
}

static void opportunities_reset(struct Qdisc *sch)
{
	struct opportunities *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_reset(q->below);
	kfree_skb(q->passing);
	q->passing = NULL;
}

static void opportunities_destroy(struct Qdisc *sch)
{
	struct opportunities *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->below);
}

/* The class is there for what is below. */
#define THE_CLASS 1

static int class_graft(struct Qdisc *sch, unsigned long cl, struct Qdisc *new, struct Qdisc **old,
		       struct netlink_ext_ack *extack)
{
	struct opportunities *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ? new : &noop_qdisc, &q->below);
	return 0;
}

static struct Qdisc *class_leaf(struct Qdisc *sch, unsigned long cl)
{
	struct opportunities *q = qdisc_priv(sch);

	return q->below;
}

static unsigned long class_find(struct Qdisc *sch, u32 classid)
{
	return THE_CLASS;
}

static void class_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (walker->stop)
		return;
	if (walker->count >= walker->skip && walker->fn(sch, THE_CLASS, walker) < 0)
		walker->stop = 1;
	else
		walker->count++;
}

static int class_dump(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb, struct tcmsg *tcm)
{
	struct opportunities *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(THE_CLASS);
	tcm->tcm_info = q->below->handle;
	return 0;
}

static const struct Qdisc_class_ops class_ops = {
	.graft = class_graft,
	.leaf = class_leaf,
	.find = class_find,
	.walk = class_walk,
	.dump = class_dump,
};

static const struct Qdisc_ops ops = {
	.cl_ops = &class_ops,
	.priv_size = sizeof(struct opportunities),
	.enqueue = opportunities_enqueue,
	.dequeue = opportunities_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = opportunities_init,
	.reset = opportunities_reset,
	.destroy = opportunities_destroy,
	.owner = THIS_MODULE,
};

static int read_number(char **text, u32 *number)
{
	char *word = strsep(text, ",");

	return word ? kstrtou32(word, 10, number) : -EINVAL;
}

static struct trace *trace_of_link(u32 number)
{
	unsigned int place;

	for (place = 0; place < links; place++)
		if (link[place] == number)
			return &traces[place];
	return NULL;
}

/* Makes room for one more. */
static int grow(struct trace *trace)
{
	u32 room = trace->room ? 2 * trace->room : 1024;
	u64 *at_ns;

	if (trace->count < trace->room)
		return 0;
	at_ns = kvmalloc_array(room, sizeof(*at_ns), GFP_KERNEL);
	if (!at_ns)
		return -ENOMEM;
	if (trace->at_ns)
		memcpy(at_ns, trace->at_ns, trace->count * sizeof(*at_ns));
	kvfree(trace->at_ns);
	trace->at_ns = at_ns;
	trace->room = room;
	return 0;
}

/* Adds to a link's opportunities. */
static int add(struct trace *trace, char *gaps)
{
	u64 at_ns = trace->count ? trace->at_ns[trace->count - 1] : 0;

	while (gaps) {
		u32 gap_ms;
		int error = read_number(&gaps, &gap_ms);

		if (!error)
			error = grow(trace);
		if (error)
			return error;
		at_ns += gap_ms * (u64)NSEC_PER_MSEC;
		trace->at_ns[trace->count++] = at_ns;
	}
	return at_ns <= trace->period_ns ? 0 : -EINVAL;
}

static int read_trace(char *text)
{
	u32 number, bytes, period_ms;
	struct trace *trace;

	if (read_number(&text, &number) || read_number(&text, &bytes) || read_number(&text, &period_ms))
		return -EINVAL;
	trace = trace_of_link(number);
	if (!trace || !bytes || !period_ms)
		return -EINVAL;
	trace->bytes = bytes;
	trace->period_ns = period_ms * (u64)NSEC_PER_MSEC;
	return add(trace, text);
}

static int trace_set(const char *given, const struct kernel_param *parameter)
{
	char *text = kstrdup(given, GFP_KERNEL);
	int error = text ? -EBUSY : -ENOMEM;

	if (text && !zero_ns)
		error = read_trace(text);
	kfree(text);
	return error;
}

static const struct kernel_param_ops trace_ops = { .set = trace_set };
module_param_cb(trace, &trace_ops, NULL, 0200);
MODULE_PARM_DESC(trace, "a link's number, bytes, period, and gaps between its next opportunities, in ms, with commas");

static void unregister(unsigned int count)
{
	while (count--) {
		unregister_qdisc(&traces[count].ops);
		kvfree(traces[count].at_ns);
	}
}

static int __init opportunities_register(void)
{
	unsigned int place;

	for (place = 0; place < links; place++) {
		struct Qdisc_ops *own = &traces[place].ops;
		int error;

		*own = ops;
		snprintf(own->id, sizeof(own->id), "opportunity%u", link[place]);
		error = register_qdisc(own);
		if (error) {
			unregister(place);
			return error;
		}
	}
	return 0;
}

static void __exit opportunities_unregister(void)
{
	unregister(links);
}

module_init(opportunities_register);
module_exit(opportunities_unregister);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("delivery opportunities of a trace");
