//! Nodes, links with their impairments, and paths.

use ackclock_core::{Rate, Time};
use serde::Deserialize;

use crate::trace::TracePlan;

/// A host or a switch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodePlan {
    /// Its name in the dataset.
    pub name: String,
    /// True if flows may begin and end here; no path leads through a host.
    pub host: bool,
}

/// The two nodes that a link joins, or a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndsPlan {
    /// Index into the plan's nodes.
    pub source: u32,
    /// Index into the plan's nodes.
    pub destination: u32,
}

/// A link that can queue: a queue discipline in front of a transmitter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// Its name in the dataset, for example `bottleneck`.
    pub name: String,
    /// The nodes that it joins; `null` for a link that only paths name.
    #[serde(deserialize_with = "Option::deserialize")]
    pub ends: Option<EndsPlan>,
    /// Transmission rate of wire bytes.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    /// Trace of the rate, if it varies; `rate` is its mean.
    #[serde(deserialize_with = "Option::deserialize")]
    pub trace: Option<TracePlan>,
    /// Propagation delay behind the transmitter.
    #[serde(rename = "delay_s")]
    pub delay: Time,
    /// Its share among equally short paths, for [`Routing::Weighted`].
    pub weight: f64,
    /// The burst of a token bucket that lets packets go in the transmitter's place; `null` for a transmitter.
    #[serde(deserialize_with = "Option::deserialize")]
    pub burst_bytes: Option<u64>,
    /// Bytes on the wire beyond the IP packet (14 for an Ethernet header).
    pub frame_overhead_bytes: u32,
    /// The queue in front of the transmitter. The packet in transmission is not in it.
    pub queue: QueuePlan,
    /// Random loss before the queue.
    #[serde(deserialize_with = "Option::deserialize")]
    pub loss: Option<LossPlan>,
    /// Impairments behind the transmitter; `null`: delay only.
    #[serde(deserialize_with = "Option::deserialize")]
    pub medium: Option<ImpairmentPlan>,
    /// True if the metrics look at this link.
    pub bottleneck: bool,
}

/// A queue discipline and its complete parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuePlan {
    /// Name as in `tc`.
    pub discipline: String,
    /// Parameters as named in the algorithm spec, in SI units.
    pub parameters: serde_json::Value,
}

/// Loss of packets that is independent of the queue.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossPlan {
    /// Each `packets`-th data packet of a flow is lost (the model of RFC 9438's tables).
    Every {
        /// Period in data packets, ≥ 2.
        packets: u64,
    },
    /// Each data packet is lost with this probability (Bernoulli).
    Bernoulli {
        /// Probability in [0, 1].
        probability: f64,
    },
    /// Each data packet is lost with the probability of the state that it finds, good or bad (Gilbert and Elliott).
    GilbertElliott {
        /// Probability that the bad state follows the good one, drawn with each data packet.
        p_good_to_bad: f64,
        /// Probability that the good state follows the bad one.
        p_bad_to_good: f64,
        /// Probability of loss in the bad state.
        in_bad: f64,
        /// Probability of loss in the good state.
        in_good: f64,
    },
    /// `Bernoulli` with separate probabilities for SYNs and ACKs, and thinned ACKs.
    ByKind {
        /// Probability of each data packet, in [0, 1].
        probability: f64,
        /// Probability of each SYN or SYN/ACK, in [0, 1].
        syn: f64,
        /// Probability of each ACK without data, in [0, 1].
        ack: f64,
        /// Number of successive ACKs of a flow of which only the last is forwarded, ≥ 1.
        ack_thinning: u64,
    },
}

/// Routing between two nodes. Paths are shortest ones, by the number of links, or two of them in sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// One shortest path for all packets between the same two nodes.
    Single,
    /// Each switch hashes the flow, with a salt of its own, onto one of its equally short next links (RFC 2992).
    Ecmp,
    /// Each switch draws one of its equally short next links for every packet.
    EcmpPacket,
    /// ECMP in proportion to the links' weights.
    Weighted,
    /// Each switch draws one of its equally short next links for every flowlet: the packets of a flow between two
    /// gaps of at least the plan's `flowlet_gap` (S. Sinha, S. Kandula, D. Katabi, `HotNets` 2004).
    Flowlet,
    /// Each flow goes a shortest way to a switch that is drawn for it, and on a shortest way from there (L. Valiant,
    /// G. Brebner, STOC 1981).
    Valiant,
}

/// A change of a link at a given time; what is `null` stays.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangePlan {
    /// Time of the change.
    #[serde(rename = "at_s")]
    pub at: Time,
    /// Index into the plan's links.
    pub link: u32,
    /// The rate from now on, also in place of a trace; a packet in transmission keeps the old one.
    #[serde(rename = "rate_bps", deserialize_with = "Option::deserialize")]
    pub rate: Option<Rate>,
    /// The propagation delay from now on; packets do not overtake each other.
    #[serde(rename = "delay_s", deserialize_with = "Option::deserialize")]
    pub delay: Option<Time>,
    /// `false`: the link fails, and loses what it holds and is offered; `true`: it works again.
    #[serde(deserialize_with = "Option::deserialize")]
    pub up: Option<bool>,
    /// The random loss from now on.
    #[serde(deserialize_with = "Option::deserialize")]
    pub loss: Option<LossPlan>,
    /// New impairments.
    #[serde(deserialize_with = "Option::deserialize")]
    pub medium: Option<ImpairmentPlan>,
}

/// A path: to the first hop's queue, on to the next, then to the far end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathPlan {
    /// The queueing links on it, in order.
    pub hops: Vec<HopPlan>,
    /// Propagation delay after the last hop (or of the whole path if there is none).
    #[serde(rename = "delay_s")]
    pub delay: Time,
}

/// A queueing link on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HopPlan {
    /// Propagation delay to this link's queue.
    #[serde(rename = "delay_s")]
    pub delay: Time,
    /// Index into the plan's links.
    pub link: u32,
}

/// A forward path and a reverse path.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathPairPlan {
    /// Path of the data.
    pub forward: PathPlan,
    /// Path of the ACKs.
    pub reverse: PathPlan,
}

impl PathPairPlan {
    /// The propagation delay there and back, over the links of a plan.
    pub fn base_rtt(&self, links: &[LinkPlan]) -> Time {
        let one_way = |path: &PathPlan| {
            let hops = path.hops.iter();
            hops.fold(path.delay, |sum, hop| {
                sum + hop.delay + links[hop.link as usize].delay
            })
        };
        one_way(&self.forward) + one_way(&self.reverse)
    }
}

/// Impairments of packets behind a link's transmitter. Each has a separate stream of random numbers.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpairmentPlan {
    /// The propagation delay varies.
    #[serde(deserialize_with = "Option::deserialize")]
    pub jitter: Option<JitterPlan>,
    /// Chance of a packet to arrive without the propagation delay, before others.
    pub reorder: f64,
    /// Chance of a packet to arrive twice.
    pub duplicate: f64,
    /// Chance of a packet to be corrupted: its destination discards it for its checksum.
    pub corrupt: f64,
    /// Rewriting of the ECN field of the outermost IP header; `null`: none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub ecn: Option<EcnRewrite>,
    /// The IP-in-IP tunnel that the packets take over this link; `null`: none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub tunnel: Option<Tunnel>,
}

/// A node that rewrites the ECN field (RFC 3168 section 18 lists what such changes do).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EcnRewrite {
    /// Every codepoint becomes Not-ECT.
    Bleach,
    /// ECT(1) becomes ECT(0).
    #[serde(rename = "ect1_to_ect0")]
    Ect1ToEct0,
    /// CE becomes ECT(0).
    #[serde(rename = "ce_to_ect0")]
    CeToEct0,
}

/// ECN of an IP-in-IP tunnel: the outer header at the ingress, and the inner one at the egress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tunnel {
    /// Normal mode of RFC 6040: the field is copied, and combined by its figure 4.
    Rfc6040,
    /// Compatibility mode of RFC 6040 section 4.3: the outer header is Not-ECT.
    Compatibility,
    /// Full functionality of RFC 3168 section 9.1.1: CE is ECT(0) in the outer header, and CE is copied back to ECT.
    Rfc3168,
    /// A tunnel of before ECN (RFC 2003): the field is copied, and the outer one is discarded: marks are lost.
    CeLost,
}

impl ImpairmentPlan {
    /// No impairment.
    pub const NONE: ImpairmentPlan = ImpairmentPlan {
        jitter: None,
        reorder: 0.0,
        duplicate: 0.0,
        corrupt: 0.0,
        ecn: None,
        tunnel: None,
    };
}

/// Jitter of the propagation delay: drawn for each packet, not below zero.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterPlan {
    /// Half the width of a uniform distribution, the standard deviation of a normal one.
    #[serde(rename = "deviation_s")]
    pub deviation: Time,
    /// Distribution of the deviation from the link's delay.
    pub distribution: Distribution,
    /// True if no packet overtakes another.
    pub in_order: bool,
}

/// A distribution of differences, as `tc` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Evenly from −1 to 1 deviation.
    Uniform,
    /// Gaussian.
    Normal,
}
