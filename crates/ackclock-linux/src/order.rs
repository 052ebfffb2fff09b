//! The order: what the process inside is told, as JSON.
//!
//! Each field is required (`null` where a quantity is absent) and an unknown field is an error, in the plan inside as well.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use ackclock_core::Time;
use ackclock_plan::{Plan, PopulationPlan, TcpPlan};
use serde::Deserialize;

use crate::Error;

/// What to set up, to send and to write down.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The plan.
    pub plan: Plan,
    /// The run's seed.
    pub seed: u64,
    /// Whose time it is.
    pub clock: ClockKind,
    /// Where it is carried out, if each host of the order is a machine of its own; `null`: all are namespaces here.
    #[serde(deserialize_with = "Option::deserialize")]
    pub here: Option<Here>,
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
    /// How often a periodic application reads or writes, and one of a given rate writes at most.
    #[serde(rename = "app_interval_s")]
    pub app_interval: Time,
    /// When the applications read.
    pub reader: Care,
    /// When the applications write.
    pub writer: Care,
    /// Where the result goes.
    pub result: PathBuf,
    /// Files of the captures, one for each of the plan's vantages; or none.
    pub captures: Vec<PathBuf>,
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

/// One of several machines that carry an order out together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Here {
    /// The host that this machine is: its sockets are made where the process is, and those of others are elsewhere.
    pub host: String,
    /// The first port on which any of them listens.
    pub first_port: u16,
    /// Where the data that are sent here come from; `null`: from memory.
    #[serde(deserialize_with = "Option::deserialize")]
    pub source: Option<Stored>,
    /// Where the data that arrive here go to; `null`: nowhere.
    #[serde(deserialize_with = "Option::deserialize")]
    pub sink: Option<Stored>,
}

/// Data on a disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// A folder, in which a file without a name is made; of a source perhaps a file, which is read.
    pub place: PathBuf,
    /// What is read or written there at most, again and again.
    pub bytes: u64,
}

/// When an application looks after its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Care {
    /// The kernel does as if the application were always there.
    Immediate,
    /// Every `app_interval_s`.
    Periodic,
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
    /// Whether there is an event of it.
    pub told: bool,
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
    /// The plan's nodes for which they stand; `null`: the plan gives paths.
    #[serde(deserialize_with = "Option::deserialize")]
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

impl Order {
    /// Reads an order.
    ///
    /// # Errors
    /// It is not JSON, lacks a field or has an unknown one, no engine could carry its plan out, or its lists do not fit the plan.
    pub fn parse(json: &str) -> Result<Order, Error> {
        let order: Order = serde_json::from_str(json)?;
        order.check()?;
        Ok(order)
    }

    fn check(&self) -> Result<(), Error> {
        let plan = &self.plan;
        plan.check()?;
        same_length("flows", self.flows.len(), plan.flows.len())?;
        same_length("datagrams", self.datagrams.len(), plan.datagrams.len())?;
        same_length("traffic", self.traffic.len(), plan.traffic.len())?;
        same_length("sockets", self.sockets.len(), plan.groups.len())?;
        let groups = plan.flows.iter().map(|flow| flow.group);
        for group in groups.chain(plan.traffic.iter().map(|traffic| traffic.group)) {
            self.sockets_of(group)?;
        }
        for (traffic, ways) in plan.traffic.iter().zip(&self.traffic) {
            if let PopulationPlan::Paths { paths } = &traffic.population {
                same_length("traffic's ways", ways.len(), paths.len())?;
            }
        }
        let links = self.queues.iter().chain(&self.losses).map(|of| of.link);
        for link in links.chain(self.changes.iter().map(|change| change.link)) {
            if link as usize >= plan.links.len() {
                return Err(Error::Order(format!("link {link} is not in the plan")));
            }
        }
        positive("plan.duration_s", plan.duration)?;
        positive("app_interval_s", self.app_interval)
    }

    /// Whether a host is this machine, or one of its namespaces.
    pub fn has(&self, host: &Host) -> bool {
        let here = self.here.as_ref();
        here.is_none_or(|here| here.host == host.namespace)
    }

    /// The sockets of a group and its TCP.
    ///
    /// # Errors
    /// It has none.
    pub fn sockets_of(&self, group: u32) -> Result<(&SocketOptions, &TcpPlan), Error> {
        let sockets = self.sockets.get(group as usize).and_then(Option::as_ref);
        let group_plan = self.plan.groups.get(group as usize);
        let tcp = group_plan.and_then(|group| group.tcp.as_ref());
        sockets
            .zip(tcp)
            .ok_or_else(|| Error::Order(format!("group {group} has no TCP sockets")))
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
#[path = "../../ackclock-plan/tests/strict/mod.rs"]
mod strict;

#[cfg(test)]
mod tests {
    use serde_json::{json, Value};

    use super::*;

    /// The complete plan, between hosts that are not asked.
    fn order() -> Value {
        let plan = include_str!("../../ackclock-plan/tests/complete.json");
        let plan: Value = serde_json::from_str(plan).expect("JSON");
        let host =
            |namespace: &str, address: &str| json!({"namespace": namespace, "address": address});
        let way = json!({"source": host("tx0", "10.1.0.1"), "destination": host("rx0", "10.2.0.1"), "nodes": null});
        json!({
            "plan": plan,
            "seed": 1, "clock": "virtual", "here": null, "setup": ["ip netns add tx0"],
            "changes": [{"at_s": 2.0, "link": 0, "rate_bps": 1e7, "told": true, "commands": ["tc qdisc"]}],
            "sockets": [
                {
                    "congestion": "cubic", "mss_bytes": null, "send_buffer_bytes": null, "receive_buffer_bytes": null,
                    "window_clamp_bytes": null,
                },
                null
            ],
            "flows": [way, way], "datagrams": [way], "traffic": [[way], [], [], []],
            "queues": [{"link": 0, "namespace": "q0", "device": "out", "handle": "10:"}], "losses": [],
            "app_interval_s": 0.005, "reader": "immediate", "writer": "immediate", "result": "/run/result.bin", "captures": [],
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
            (ClockKind::Virtual, Care::Immediate)
        );
        assert_eq!(order.app_interval, Time::from_milliseconds(5));
        let (sockets, tcp) = order.sockets_of(0).expect("TCP");
        assert_eq!(
            (sockets.congestion.as_str(), tcp.segment_header_bytes()),
            ("cubic", 52)
        );
    }

    #[test]
    fn a_host_is_here_if_all_are_or_it_is_the_one() {
        let mut changed = order();
        changed["here"] =
            json!({"host": "tx0", "first_port": 10_000, "source": null, "sink": null});
        let one: Order = serde_json::from_value(changed).expect("an order");
        let all = Order::parse(&order().to_string()).expect("an order");
        let (source, destination) = (&one.flows[0].source, &one.flows[0].destination);
        assert!(one.has(source) && !one.has(destination));
        assert!(all.has(source) && all.has(destination));
    }

    #[test]
    fn each_field_is_required_and_no_other_is_known() {
        let faults = strict::faults(&order(), |order| Order::parse(&order.to_string()).is_ok());
        assert!(faults.is_empty(), "{faults:#?}");
    }

    #[test]
    fn lists_must_fit_the_plan() {
        assert_eq!(
            refusal(|order| order["flows"] = json!([])),
            "order: flows: 0 given, but the plan has 2"
        );
        assert_eq!(
            refusal(|order| order["sockets"][0] = json!(null)),
            "order: group 0 has no TCP sockets"
        );
        assert_eq!(
            refusal(|order| order["queues"][0]["link"] = json!(7)),
            "order: link 7 is not in the plan"
        );
        let refused = refusal(|order| order["plan"]["record"]["interval_s"] = json!(0.0));
        assert_eq!(refused, "plan: record.interval_s must be greater than zero");
    }
}
