"""Terms of networking that are no name of ackclock's, and the names, commands and files that treat of them.

`ackclock show` falls back on them: a reader asks for "zero window" or "policer", which no key and no metric is called.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DOCTOR = "doctor CAPTURE"
CAPTURE = "capture CAPTURE"


@dataclass(frozen=True, slots=True)
class Term:
    """A term: its other spellings, what it means, names that `ackclock show` explains, and commands."""

    spellings: tuple[str, ...]
    meaning: str
    names: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


TERMS = (
    Term(
        ("zero window", "receive window", "rwnd", "advertised window", "window full", "flow control", "slow reader"),
        "The receiver bounds what may be in flight; it closes its window while its application reads too slowly.",
        ("tcp.receive_window", "flows.slow_reader"),
        (DOCTOR, CAPTURE),
    ),
    Term(
        ("bufferbloat", "latency", "latency under load", "standing queue", "ping"),
        "How long packets take; under load most of it is queueing in a buffer larger than its link needs.",
        ("queue_delay_p95_s", "queue_delay_mean_s", "rtt_mean_s", "one_way_delay_p95_s", "fq_codel"),
        ("find SCENARIO --require 'queue_delay_p95 <= 20ms' --candidates pfifo,codel,fq_codel",),
    ),
    Term(
        ("jitter", "delay variation", "pdv"),
        "Variation of the delay of successive packets; no metric is called so.",
        ("network.jitter", "one_way_delay_p95_s", "frame_delay_p95_s"),
        ("plot RESULT cdf",),
    ),
    Term(
        ("aqm", "active queue management", "qdisc", "queueing discipline", "scheduler"),
        "What decides which packet waits, leaves, is marked or dropped.",
        ("codel", "fq_codel", "cake", "pie", "red", "dualpi2", "pfifo"),
        ("find SCENARIO --candidates pfifo,codel,fq_codel,pie", "show"),
    ),
    Term(
        ("buffer", "buffer size", "buffer sizing", "queue length", "bdp", "bandwidth delay product"),
        "How much may wait in a queue: its limit, in packets, bytes or bandwidth-delay products (bdp).",
        ("network.queue.limit", "queue_mean_p", "utilisation"),
        ("find SCENARIO --require 'utilisation >= 98%' --vary limit=0.05bdp..2bdp --smallest",),
    ),
    Term(
        (
            "policer",
            "policing",
            "rate limiter",
            "shaper",
            "shaping",
            "traffic shaping",
            "traffic policing",
            "token bucket",
        ),
        "A token bucket: a shaper queues what exceeds its rate, a policer (a tbf with a limit of one packet) drops it.",
        ("tbf", "network.burst"),
        (DOCTOR, "explore"),
    ),
    Term(
        ("retransmission", "retransmit", "spurious retransmission", "duplicate ack", "dup ack", "dupack"),
        "Another copy of a segment; spurious if the first copy had arrived.",
        ("retransmission_rate", "retransmissions", "tcp.undo_spurious"),
        (CAPTURE, DOCTOR),
    ),
    Term(
        ("loss", "packet loss", "drop", "drops", "random loss", "bit errors"),
        "Packets that do not arrive: dropped by a queue, or lost at random on a link.",
        ("loss_rate", "udp_loss_rate", "network.loss"),
        (CAPTURE,),
    ),
    Term(
        (
            "fast retransmit",
            "fast recovery",
            "rack",
            "tlp",
            "tail loss probe",
            "prr",
            "loss recovery",
            "loss detection",
        ),
        "How a sender finds losses and sends again without waiting for a timeout (RFC 5681, 6937, 8985).",
        ("tcp.loss_detection", "tcp.tail_loss_probe", "tcp.recovery_reduction"),
        (CAPTURE,),
    ),
    Term(
        ("rto", "retransmission timeout", "timeout", "pto"),
        "The timer after which a sender retransmits (RFC 6298).",
        ("timeouts", "tcp.min_rto", "tcp.initial_rto"),
        (CAPTURE,),
    ),
    Term(
        ("slow start", "hystart", "initial window", "iw10", "iw", "ssthresh"),
        "The window doubles in each round trip, from the initial window to the first loss or ssthresh (RFC 5681).",
        ("tcp.initial_window", "cubic", "fct_mean_s"),
        ("plot RESULT cwnd", "explore"),
    ),
    Term(
        ("cwnd", "congestion window", "window", "window scale", "in flight"),
        "How many segments a sender may have in flight.",
        ("cwnd_mean", "cwnd_peak", "cwnd_trough", "tcp.receive_window"),
        ("plot RESULT cwnd", CAPTURE),
    ),
    Term(
        ("delayed ack", "ack aggregation", "ack thinning", "quick ack", "stretch ack"),
        "A receiver acknowledges several segments with one ACK, or after a timer.",
        ("tcp.delayed_ack", "tcp.delayed_ack_timeout", "tcp.byte_counting"),
    ),
    Term(
        ("pacing", "pacing rate"), "Packets are spread over the round trip, not sent in bursts.", ("tcp.pacing", "bbr")
    ),
    Term(
        ("tso", "gso", "gro", "lro", "offload", "offloads"),
        "Offloads send and receive several segments as one; each segment is a packet here.",
        ("tcp.tso_batching",),
        ("doctor host",),
    ),
    Term(("mss", "mtu", "packet size", "segment size"), "The largest packet, and its payload.", ("tcp.mtu", "tcp.mss")),
    Term(
        ("sack", "dsack", "selective acknowledgement", "timestamps"),
        "Options of TCP (RFC 2018, 2883, 7323).",
        ("tcp.sack", "tcp.timestamps"),
    ),
    Term(
        ("ecn", "marks", "marking", "ce", "explicit congestion notification"),
        "A queue marks packets instead of dropping them (RFC 3168).",
        ("mark_rate", "tcp.ecn", "network.ecn", "dctcp"),
    ),
    Term(
        ("l4s", "low latency low loss"),
        "Low latency, low loss, scalable throughput (RFC 9330).",
        ("dualpi2", "prague", "tcp.ecn"),
        ("evaluate prague",),
    ),
    Term(
        ("fairness", "fair share", "rfc 9743", "harm"),
        "How equally flows share a link: among like flows, and between groups.",
        ("jain", "max_min_fairness", "min_group_share", "min_share"),
        ("evaluate NAME", "compare SCENARIO --try reno,cubic,bbr"),
    ),
    Term(
        ("starvation", "starve", "late comer", "latecomer"),
        "A flow or group gets less than a tenth of its max-min fair share; `run` warns of it.",
        ("min_group_share", "goodput_min_bps", "convergence_s", "flows.start"),
    ),
    Term(
        ("flow completion time", "completion time", "fct", "tail latency", "page load time", "response time"),
        "From the SYN to the ACK of the last byte of a transfer.",
        ("fct_mean_s", "fct_p95_s", "fct_p99_s", "slowdown_p99"),
        ("plot RESULT cdf",),
    ),
    Term(
        ("global synchronization", "global synchronisation", "loss synchronisation", "phase effects"),
        "Flows lose packets in the same congestion epoch.",
        ("synchronisation", "congestion_epochs", "flows_per_epoch"),
        ("run SCENARIO --perturb",),
    ),
    Term(
        ("reordering", "out of order", "duplication", "netem", "impairment", "impairments"),
        "What a link does to packets besides queueing, as tc-netem(8) does.",
        ("network.reorder", "network.duplicate", "network.jitter", "network.loss", "network.corrupt"),
    ),
    Term(
        ("satellite", "geo", "long fat network"),
        "A path with a long RTT: a scenario like any other; programs of yours can use it as well.",
        ("network.rtt", "network.loss", "asymmetric", "hybla"),
        ("run scenarios/satellite.toml", "shell SCENARIO -- PROGRAM"),
    ),
    Term(
        ("wifi", "wi-fi", "802.11", "cellular", "lte", "5g", "variable rate"),
        "A link whose rate changes: a trace, or changes at given times.",
        ("network.rate", "network.changes"),
        ("run scenarios/wifi.toml", "run scenarios/cellular.toml"),
    ),
    Term(
        ("stall", "stalls", "idle", "silence"),
        "A sender has data and sends nothing, or waits for its application: captures show which, and why.",
        ("flows.slow_reader", "flows.writes"),
        (DOCTOR, "doctor host stalls"),
    ),
    Term(
        ("iperf", "iperf3", "flent", "teacup", "ss", "rrul"),
        "Programs that measure networks: their output becomes a result, for report, plot and metrics.",
        (),
        ("import FILE", "report RESULT RESULT"),
    ),
    Term(
        ("wireshark", "tcpdump", "tshark", "packet capture", "capture file", "trace file"),
        "Captures of packets are read; runs write them with record.pcap.",
        ("record.pcap",),
        (CAPTURE, DOCTOR),
    ),
    Term(("voice", "voip", "call", "webrtc", "rtp"), "Traffic of calls and video.", ("udp", "media", "flows.dscp")),
    Term(
        ("head of line blocking", "hol blocking", "stream", "multiplexing"),
        "A lost packet delays what was sent after it: with TCP all, with QUIC that of its stream. No metric counts it.",
        ("quic", "fct_p95_s"),
    ),
    Term(
        ("nagle", "nagle algorithm", "tcp_nodelay"),
        "A short segment waits while earlier data is unacknowledged (RFC 1122 section 4.2.3.4); `nodelay` ends that.",
        ("flows.writes",),
        (DOCTOR,),
    ),
    Term(
        ("keepalive", "keep alive"),
        "Probes of an idle connection (RFC 1122 section 4.2.3.6): found in captures, and sent by no engine.",
        (),
        (CAPTURE,),
    ),
    Term(
        ("multipath", "mptcp", "multipath tcp", "ecmp", "load balancing"),
        "Several paths between hosts, of a graph, a fat tree or a leaf-spine network; Multipath TCP is not modelled.",
        ("graph", "fat-tree", "leaf-spine"),
    ),
    Term(
        ("tail drop", "drop tail", "droptail", "fifo"),
        "A FIFO that drops what arrives when it is full.",
        ("pfifo", "bfifo"),
    ),
)


def key(text: str) -> str:
    """Return a term as it is compared: in lower case, its words separated by a space."""
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def find(text: str) -> Term | None:
    """Return the term with this spelling, in the singular or the plural."""
    wanted = {key(text), key(text).removesuffix("s")}
    return next((term for term in TERMS if wanted & {key(word) for word in term.spellings}), None)
