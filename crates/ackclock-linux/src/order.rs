//! The order: what the process inside is told, as JSON.
//!
//! Each field is required (`null` where a quantity is absent) and an unknown field is an error. The plan inside is the
//! frozen plan that `ackclock run --dry-run` prints; of it only what matters here is read.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use ackclock_traffic::{DatagramSource, Pairing, Population, Workload};
use ackclock_units::{Rate, Time};
use serde::Deserialize;

use crate::Error;

/// What to set up, to send and to write down.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The frozen plan.
    pub plan: Plan,
    /// The run's seed.
    pub seed: u64,
    /// Whose time it is.
    pub clock: ClockKind,
    /// Commands that make the network, one a line, in order.
    pub setup: Vec<String>,
    /// Commands at given times, in order of time.
    pub changes: Vec<Change>,
    /// By group of the plan: its sockets; `null` if it is not TCP.
    pub sockets: Vec<Option<SocketOptions>>,
    /// By flow of the plan: its two hosts.
    pub flows: Vec<Way>,
    /// By UDP source of the plan: its two hosts.
    pub datagrams: Vec<Way>,
    /// By traffic of the plan: its ways. Of paths, one each, in their order; of nodes, one for each pair that may
    /// meet, which names it.
    pub traffic: Vec<Vec<Way>>,
    /// The queues of the links.
    pub queues: Vec<Device>,
    /// Where packets are lost at random.
    pub losses: Vec<Device>,
    /// How often a lazy application reads or writes, and one of a given rate writes at most.
    #[serde(rename = "serve_s")]
    pub serve: Time,
    /// When the applications read.
    pub reader: Care,
    /// When the applications write.
    pub writer: Care,
    /// Where the result goes.
    pub result: PathBuf,
    /// File of the capture; `null`: none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub capture: Option<PathBuf>,
}

/// Whose time a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// A guest's, which stands still while there is work.
    Virtual,
    /// The world's.
    Real,
}

/// When an application looks after its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Care {
    /// The kernel does as if the application were always there.
    Prompt,
    /// Every `serve_s`.
    Lazy,
}

/// Commands at a time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When.
    #[serde(rename = "at_s")]
    pub at: Time,
    /// The link that changes.
    pub link: u32,
    /// Its rate from now on, 0 if it is down: the value of the event.
    pub rate_bps: f64,
    /// As in [`Order::setup`].
    pub commands: Vec<String>,
}

/// What the sockets of a group are set to; `null` is the kernel's default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SocketOptions {
    /// `TCP_CONGESTION`, at both ends.
    pub congestion: String,
    /// `TCP_MAXSEG`: as the kernel counts it, the options not taken off.
    #[serde(deserialize_with = "Option::deserialize")]
    pub mss_bytes: Option<u32>,
    /// `SO_SNDBUF`; the kernel doubles it.
    #[serde(deserialize_with = "Option::deserialize")]
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF`; the kernel doubles it.
    #[serde(deserialize_with = "Option::deserialize")]
    pub receive_buffer_bytes: Option<u32>,
    /// `TCP_WINDOW_CLAMP` of the receiver.
    #[serde(deserialize_with = "Option::deserialize")]
    pub window_clamp_bytes: Option<u32>,
}

/// A host: its namespace and its address there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name of the namespace.
    pub namespace: String,
    /// An address of it.
    pub address: Ipv4Addr,
}

/// The two hosts of a flow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// Where the data come from.
    pub source: Host,
    /// Where they go to.
    pub destination: Host,
    /// The plan's nodes for which they stand, of traffic between nodes.
    #[serde(default)]
    pub nodes: Option<[u32; 2]>,
}

/// A queue discipline on a device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Index into the plan's links.
    pub link: u32,
    /// Name of the namespace.
    pub namespace: String,
    /// Name of the device.
    pub device: String,
    /// The discipline's handle, as `tc` writes it: `10:`.
    pub handle: String,
}

/// What is read of the plan; `crates/ackclock-packet/src/plan.rs` describes it.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Plan {
    #[serde(rename = "duration_s")]
    pub duration: Time,
    #[serde(rename = "warmup_s")]
    pub warmup: Time,
    pub links: Vec<Link>,
    pub groups: Vec<Group>,
    pub flows: Vec<Flow>,
    pub traffic: Vec<Traffic>,
    pub datagrams: Vec<Datagrams>,
    pub record: Record,
}

/// A link of the plan.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Link {
    pub name: String,
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    #[serde(rename = "delay_s")]
    pub delay: Time,
    pub bottleneck: bool,
    pub queue: Discipline,
}

/// A link's queue discipline.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Discipline {
    pub discipline: String,
}

impl Discipline {
    /// Whether it drops what has waited, and not what arrives.
    pub fn drops_at_its_head(&self) -> bool {
        matches!(self.discipline.as_str(), "codel" | "fq_codel" | "spa")
    }
}

/// A group of the plan.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Group {
    pub tcp: Option<Tcp>,
}

/// The TCP of a group.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Tcp {
    pub mss_bytes: u32,
    pub header_bytes: u32,
    pub timestamps: bool,
}

/// A transfer of the plan.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Flow {
    pub group: u32,
    #[serde(rename = "start_s")]
    pub start: Time,
    #[serde(rename = "start_jitter_s")]
    pub start_jitter: Time,
    #[serde(rename = "stop_s")]
    pub stop: Option<Time>,
    pub size_bytes: Option<u64>,
    pub request_bytes: Option<u32>,
    #[serde(rename = "application_rate_bps")]
    pub application_rate: Option<Rate>,
    pub priority: u8,
    pub ends: Option<Ends>,
}

/// The two nodes of a flow.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Ends {
    pub source: u32,
    pub destination: u32,
}

/// Traffic of the plan.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Traffic {
    pub group: u32,
    pub priority: u8,
    pub request_bytes: Option<u32>,
    #[serde(rename = "application_rate_bps")]
    pub application_rate: Option<Rate>,
    pub population: Participants,
    pub workload: Workload,
}

/// Between whom traffic is.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Participants {
    Paths {
        paths: Vec<Paths>,
    },
    Nodes {
        sources: Vec<u32>,
        destinations: Vec<u32>,
        pairing: Pairing,
    },
}

/// A way there and back.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Paths {
    pub forward: Path,
    pub reverse: Path,
}

/// A way.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Path {
    pub hops: Vec<Hop>,
    #[serde(rename = "delay_s")]
    pub delay: Time,
}

/// A link on a way.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Hop {
    #[serde(rename = "delay_s")]
    pub delay: Time,
    pub link: u32,
}

/// A UDP source of the plan.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Datagrams {
    pub group: u32,
    #[serde(rename = "start_s")]
    pub start: Time,
    #[serde(rename = "stop_s")]
    pub stop: Option<Time>,
    pub priority: u8,
    pub ends: Option<Ends>,
    pub payload_bytes: u32,
    pub header_bytes: u32,
    pub source: DatagramSource,
}

/// What to write down.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Record {
    #[serde(rename = "interval_s")]
    pub interval: Time,
    pub pcap: bool,
    pub traffic: bool,
    pub all_links: bool,
}

impl Order {
    /// Reads an order.
    ///
    /// # Errors
    /// It is not JSON, lacks a field or has an unknown one, or its lists do not fit the plan.
    pub fn parse(json: &str) -> Result<Order, Error> {
        let order: Order = serde_json::from_str(json)?;
        order.check()?;
        Ok(order)
    }

    fn check(&self) -> Result<(), Error> {
        let plan = &self.plan;
        same_length("flows", self.flows.len(), plan.flows.len())?;
        same_length("datagrams", self.datagrams.len(), plan.datagrams.len())?;
        same_length("traffic", self.traffic.len(), plan.traffic.len())?;
        same_length("sockets", self.sockets.len(), plan.groups.len())?;
        let groups = plan.flows.iter().map(|flow| flow.group);
        for group in groups.chain(plan.traffic.iter().map(|traffic| traffic.group)) {
            self.sockets_of(group)?;
        }
        for (traffic, ways) in plan.traffic.iter().zip(&self.traffic) {
            if let Participants::Paths { paths } = &traffic.population {
                same_length("traffic's ways", ways.len(), paths.len())?;
            }
        }
        for (index, datagrams) in plan.datagrams.iter().enumerate() {
            if let Some(fault) = datagrams.source.fault() {
                return Err(Error::Order(format!("datagrams {index}: {fault}")));
            }
        }
        let links = self.queues.iter().chain(&self.losses).map(|of| of.link);
        let links = links.chain(self.changes.iter().map(|change| change.link));
        let hops = plan.traffic.iter().flat_map(Traffic::hops);
        for link in links.chain(hops) {
            if link as usize >= plan.links.len() {
                return Err(Error::Order(format!("link {link} is not in the plan")));
            }
        }
        positive("plan.record.interval_s", plan.record.interval)?;
        positive("plan.duration_s", plan.duration)?;
        positive("serve_s", self.serve)
    }

    /// The sockets of a group and its TCP.
    ///
    /// # Errors
    /// It has none.
    pub fn sockets_of(&self, group: u32) -> Result<(&SocketOptions, &Tcp), Error> {
        let sockets = self.sockets.get(group as usize).and_then(Option::as_ref);
        let tcp = self
            .plan
            .groups
            .get(group as usize)
            .and_then(|group| group.tcp.as_ref());
        sockets
            .zip(tcp)
            .ok_or_else(|| Error::Order(format!("group {group} has no TCP sockets")))
    }
}

/// Bytes of the timestamps option, with its padding (RFC 7323).
const TIMESTAMPS_BYTES: u32 = 12;

impl Tcp {
    /// Headers of a segment with its options.
    pub fn segment_header_bytes(&self) -> u32 {
        self.header_bytes + if self.timestamps { TIMESTAMPS_BYTES } else { 0 }
    }
}

impl Plan {
    /// The propagation delay of a way there and back.
    pub fn base_rtt(&self, way: &Paths) -> Time {
        let one_way = |path: &Path| {
            let hops = path.hops.iter();
            hops.fold(path.delay, |sum, hop| {
                sum + hop.delay + self.links[hop.link as usize].delay
            })
        };
        one_way(&way.forward) + one_way(&way.reverse)
    }
}

impl Traffic {
    /// Who takes part, as the generator is told.
    pub fn population(&self) -> Population<'_> {
        match &self.population {
            Participants::Paths { paths } => Population::Paths(paths.len() as u32),
            Participants::Nodes {
                sources,
                destinations,
                pairing,
            } => Population::Nodes {
                sources,
                destinations,
                pairing: *pairing,
            },
        }
    }

    fn hops(&self) -> impl Iterator<Item = u32> + '_ {
        let paths: &[Paths] = match &self.population {
            Participants::Paths { paths } => paths,
            Participants::Nodes { .. } => &[],
        };
        let both = paths.iter().flat_map(|way| [&way.forward, &way.reverse]);
        both.flat_map(|path| path.hops.iter().map(|hop| hop.link))
    }
}

fn same_length(name: &str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Order(format!(
        "{name}: {found} given, but the plan has {expected}"
    )))
}

fn positive(name: &str, time: Time) -> Result<(), Error> {
    if time > Time::ZERO {
        return Ok(());
    }
    Err(Error::Order(format!("{name} must be positive")))
}

#[cfg(test)]
mod tests {
    use serde_json::{json, Value};

    use super::*;

    /// One flow over one link.
    fn order() -> Value {
        let host =
            |namespace: &str, address: &str| json!({"namespace": namespace, "address": address});
        json!({
            "plan": {
                "duration_s": 10.0, "warmup_s": 1.0, "name": "what the plan has besides",
                "links": [{"name": "bottleneck", "rate_bps": 1e8, "delay_s": 0.0, "bottleneck": true, "queue": {"discipline": "pfifo"}}],
                "groups": [{"label": "cubic", "tcp": {"mss_bytes": 1448, "header_bytes": 40, "timestamps": true}}],
                "flows": [{
                    "group": 0, "start_s": 0.0, "start_jitter_s": 0.0, "stop_s": null, "size_bytes": null,
                    "request_bytes": null, "application_rate_bps": null, "priority": 0, "ends": null,
                }],
                "traffic": [], "datagrams": [],
                "record": {"interval_s": 0.01, "pcap": false, "traffic": false, "all_links": false},
            },
            "seed": 1, "clock": "virtual", "setup": ["ip netns add tx0"], "changes": [],
            "sockets": [{
                "congestion": "cubic", "mss_bytes": null, "send_buffer_bytes": null, "receive_buffer_bytes": null,
                "window_clamp_bytes": null,
            }],
            "flows": [{"source": host("tx0", "10.1.0.1"), "destination": host("rx0", "10.2.0.1")}],
            "datagrams": [], "traffic": [],
            "queues": [{"link": 0, "namespace": "q0", "device": "out", "handle": "10:"}], "losses": [],
            "serve_s": 0.005, "reader": "prompt", "writer": "prompt", "result": "/run/result.bin", "capture": null,
        })
    }

    fn refusal(change: impl FnOnce(&mut Value)) -> String {
        let mut changed = order();
        change(&mut changed);
        Order::parse(&changed.to_string())
            .expect_err("refused")
            .to_string()
    }

    #[test]
    fn an_order_is_read() {
        let order = Order::parse(&order().to_string()).expect("an order");
        assert_eq!(
            (order.clock, order.reader),
            (ClockKind::Virtual, Care::Prompt)
        );
        assert_eq!(order.serve, Time::from_milliseconds(5));
        let (sockets, tcp) = order.sockets_of(0).expect("TCP");
        assert_eq!(
            (sockets.congestion.as_str(), tcp.segment_header_bytes()),
            ("cubic", 52)
        );
    }

    #[test]
    fn an_unknown_or_missing_field_is_named() {
        assert!(refusal(|order| order["surprise"] = json!(1)).contains("surprise"));
        let missing = |order: &mut Value| {
            order.as_object_mut().expect("an object").remove("queues");
        };
        assert!(refusal(missing).contains("queues"));
    }

    #[test]
    fn lists_must_fit_the_plan() {
        assert_eq!(
            refusal(|order| order["flows"] = json!([])),
            "order: flows: 0 given, but the plan has 1"
        );
        assert_eq!(
            refusal(|order| order["sockets"] = json!([null])),
            "order: group 0 has no TCP sockets"
        );
        assert_eq!(
            refusal(|order| order["queues"][0]["link"] = json!(7)),
            "order: link 7 is not in the plan"
        );
        let refused = refusal(|order| order["plan"]["record"]["interval_s"] = json!(0.0));
        assert_eq!(refused, "order: plan.record.interval_s must be positive");
    }

    #[test]
    fn the_base_rtt_is_the_delays_of_both_ways() {
        let mut order = Order::parse(&order().to_string()).expect("an order");
        order.plan.links[0].delay = Time::from_milliseconds(10);
        let hop = Hop {
            delay: Time::from_milliseconds(1),
            link: 0,
        };
        let way = Paths {
            forward: Path {
                hops: vec![hop],
                delay: Time::from_milliseconds(4),
            },
            reverse: Path {
                hops: vec![],
                delay: Time::from_milliseconds(15),
            },
        };
        assert_eq!(order.plan.base_rtt(&way), Time::from_milliseconds(30));
    }
}
