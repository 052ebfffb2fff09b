//! The run spec: the input of the process inside the kernel, as JSON.
//!
//! Each field is required (`null` where a quantity is absent) and an unknown field is an error, in the plan inside as
//! well.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use ackclock_core::Time;
use ackclock_plan::{Plan, PopulationPlan, TcpPlan};
use serde::Deserialize;

use crate::Error;

/// The specification of a run: the network, the traffic and the records.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// The plan.
    pub plan: Plan,
    /// The run's seed.
    pub seed: u64,
    /// The clock of the run.
    pub clock: ClockKind,
    /// This machine, if each host of the run spec is a machine; `null`: all hosts are namespaces here.
    #[serde(deserialize_with = "Option::deserialize")]
    #[serde(rename = "here")]
    pub local: Option<LocalHost>,
    /// Commands that make the network, one a line, in order.
    pub setup: Vec<String>,
    /// Commands at given times, in order of time.
    pub changes: Vec<Change>,
    /// By group of the plan: its sockets; `null` if it is not TCP.
    pub sockets: Vec<Option<SocketOptions>>,
    /// By flow of the plan: its two hosts.
    pub flows: Vec<HostPair>,
    /// By UDP source of the plan: its two hosts.
    pub datagrams: Vec<HostPair>,
    /// By traffic of the plan: its ways. Of paths, one each, in their order; of nodes, one for each pair that may
    /// meet, which names it.
    pub traffic: Vec<Vec<HostPair>>,
    /// The queues of the links.
    pub queues: Vec<Device>,
    /// Devices with random loss.
    pub losses: Vec<Device>,
    /// The interval at which a periodic application reads or writes, and the shortest interval between writes of one
    /// with a rate.
    #[serde(rename = "app_interval_s")]
    pub app_interval: Time,
    /// When the applications read.
    pub reader: AppTiming,
    /// When the applications write.
    pub writer: AppTiming,
    /// The path of the result.
    pub result: PathBuf,
    /// Files of the captures, one for each of the plan's vantages; or none.
    pub captures: Vec<PathBuf>,
}

/// The kind of clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// A guest's virtual time, which does not advance during work.
    Virtual,
    /// The world's.
    Real,
}

/// One of several machines that carry a run spec out together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalHost {
    /// The host that this machine is: its sockets are created here, those of other hosts on other machines.
    pub host: String,
    /// The first port on which any of them listens.
    pub first_port: u16,
    /// The file from which data are sent; `null`: memory.
    #[serde(deserialize_with = "Option::deserialize")]
    pub source: Option<Stored>,
    /// The file to which received data are written; `null`: they are discarded.
    #[serde(deserialize_with = "Option::deserialize")]
    pub sink: Option<Stored>,
}

/// Data on a disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// A folder, in which a file without a name is made; of a source perhaps a file, which is read.
    pub place: PathBuf,
    /// The size of the file, which is read or written cyclically.
    pub bytes: u64,
}

/// When an application looks after its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppTiming {
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
    /// True if there is an event of it.
    #[serde(rename = "told")]
    pub has_event: bool,
    /// The commands, as in [`RunSpec::setup`].
    pub commands: Vec<String>,
}

/// The socket options of a group; `null` is the kernel's default.
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
pub struct HostPair {
    /// The sender.
    pub source: Host,
    /// The receiver.
    pub destination: Host,
    /// The plan's nodes that they represent; `null`: the plan gives paths.
    #[serde(deserialize_with = "Option::deserialize")]
    pub nodes: Option<[u32; 2]>,
}

/// A qdisc on a device.
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

impl RunSpec {
    /// Read a run spec.
    ///
    /// # Errors It is not JSON, lacks a field or has an unknown one, no engine could carry its plan out, or its lists
    /// do not fit the plan.
    pub fn parse(json: &str) -> Result<RunSpec, Error> {
        let run_spec: RunSpec = serde_json::from_str(json)?;
        run_spec.check()?;
        Ok(run_spec)
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
            self.sockets_of_group(group)?;
        }
        for (traffic, host_pairs) in plan.traffic.iter().zip(&self.traffic) {
            if let PopulationPlan::Paths { paths } = &traffic.population {
                same_length("traffic's ways", host_pairs.len(), paths.len())?;
            }
        }
        let links = self.queues.iter().chain(&self.losses).map(|of| of.link);
        for link in links.chain(self.changes.iter().map(|change| change.link)) {
            if link as usize >= plan.links.len() {
                return Err(Error::RunSpec(format!("link {link} is not in the plan")));
            }
        }
        positive("plan.duration_s", plan.duration)?;
        positive("app_interval_s", self.app_interval)
    }

    /// Return true if a host is this machine, or one of its namespaces.
    pub fn is_local(&self, host: &Host) -> bool {
        let local = self.local.as_ref();
        local.is_none_or(|local| local.host == host.namespace)
    }

    /// The sockets of a group and its TCP.
    ///
    /// # Errors
    /// It has none.
    pub fn sockets_of_group(&self, group: u32) -> Result<(&SocketOptions, &TcpPlan), Error> {
        let sockets = self.sockets.get(group as usize).and_then(Option::as_ref);
        let group_plan = self.plan.groups.get(group as usize);
        let tcp = group_plan.and_then(|group| group.tcp.as_ref());
        sockets
            .zip(tcp)
            .ok_or_else(|| Error::RunSpec(format!("group {group} has no TCP sockets")))
    }
}

fn same_length(name: &str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::RunSpec(format!(
        "{name}: {found} given, but the plan has {expected}"
    )))
}

fn positive(name: &str, time: Time) -> Result<(), Error> {
    if time > Time::ZERO {
        return Ok(());
    }
    Err(Error::RunSpec(format!("{name} must be positive")))
}

#[cfg(test)]
#[path = "../../ackclock-plan/tests/strict/mod.rs"]
mod strict;

#[cfg(test)]
mod tests {
    use serde_json::{json, Value};

    use super::*;

    /// The complete plan, between nonexistent hosts.
    fn run_spec() -> Value {
        let plan = include_str!("../../ackclock-plan/tests/complete.json");
        let plan: Value = serde_json::from_str(plan).expect("JSON");
        let host =
            |namespace: &str, address: &str| json!({"namespace": namespace, "address": address});
        let host_pair = json!({"source": host("tx0", "10.1.0.1"), "destination": host("rx0", "10.2.0.1"), "nodes": null});
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
            "flows": [host_pair, host_pair], "datagrams": [host_pair], "traffic": [[host_pair], [], [], []],
            "queues": [{"link": 0, "namespace": "q0", "device": "out", "handle": "10:"}], "losses": [],
            "app_interval_s": 0.005, "reader": "immediate", "writer": "immediate", "result": "/run/result.bin", "captures": [],
        })
    }

    fn parse_error(change: impl FnOnce(&mut Value)) -> String {
        let mut changed = run_spec();
        change(&mut changed);
        RunSpec::parse(&changed.to_string())
            .expect_err("refused")
            .to_string()
    }

    #[test]
    fn a_run_spec_is_parsed() {
        let run_spec = RunSpec::parse(&run_spec().to_string()).expect("an order");
        assert_eq!(
            (run_spec.clock, run_spec.reader),
            (ClockKind::Virtual, AppTiming::Immediate)
        );
        assert_eq!(run_spec.app_interval, Time::from_milliseconds(5));
        let (sockets, tcp) = run_spec.sockets_of_group(0).expect("TCP");
        assert_eq!(
            (sockets.congestion.as_str(), tcp.segment_header_bytes()),
            ("cubic", 52)
        );
    }

    #[test]
    fn a_host_is_local_if_all_are_or_it_is_this_machine() {
        let mut changed = run_spec();
        changed["here"] =
            json!({"host": "tx0", "first_port": 10_000, "source": null, "sink": null});
        let one: RunSpec = serde_json::from_value(changed).expect("an order");
        let all = RunSpec::parse(&run_spec().to_string()).expect("an order");
        let (source, destination) = (&one.flows[0].source, &one.flows[0].destination);
        assert!(one.is_local(source) && !one.is_local(destination));
        assert!(all.is_local(source) && all.is_local(destination));
    }

    #[test]
    fn each_field_is_required_and_unknown_fields_are_rejected() {
        let faults = strict::faults(&run_spec(), |run_spec| {
            RunSpec::parse(&run_spec.to_string()).is_ok()
        });
        assert!(faults.is_empty(), "{faults:#?}");
    }

    #[test]
    fn lists_must_fit_the_plan() {
        assert_eq!(
            parse_error(|run_spec| run_spec["flows"] = json!([])),
            "order: flows: 0 given, but the plan has 2"
        );
        assert_eq!(
            parse_error(|run_spec| run_spec["sockets"][0] = json!(null)),
            "order: group 0 has no TCP sockets"
        );
        assert_eq!(
            parse_error(|run_spec| run_spec["queues"][0]["link"] = json!(7)),
            "order: link 7 is not in the plan"
        );
        let refused = parse_error(|run_spec| run_spec["plan"]["record"]["interval_s"] = json!(0.0));
        assert_eq!(refused, "plan: record.interval_s must be greater than zero");
    }
}
