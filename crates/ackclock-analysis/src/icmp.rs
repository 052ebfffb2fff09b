//! ICMP errors as evidence: counted by the flow whose packets they quote, the reason, and who reports it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ackclock_pcap::packet::{Address, IcmpError, IcmpKind};

/// The maximum number of reports that are kept; later ones with other keys are left out.
const MAX_REPORTS: usize = 10_000;

/// The ICMP errors about flows.
#[derive(Debug, Default)]
pub struct IcmpLog {
    counts: BTreeMap<(u32, IcmpKind, Address), Count>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    errors: u64,
    mtu: Option<u32>,
    first_ns: i64,
}

/// The ICMP errors of one kind, about one flow, by one host or router.
#[derive(Clone, Debug, PartialEq)]
pub struct IcmpReport {
    /// The flow whose packets are quoted.
    pub flow: u32,
    /// The reason.
    pub kind: IcmpKind,
    /// The sender of the errors.
    pub reporter: IpAddr,
    /// The errors.
    pub errors: u64,
    /// The smallest MTU reported, in bytes.
    pub mtu: Option<u32>,
    /// The time of the first, in seconds since the first segment.
    pub first_s: f64,
}

impl IcmpLog {
    /// Count an error about a flow.
    pub fn count(&mut self, error: &IcmpError, flow: u32, now_ns: i64) {
        let key = (flow, error.kind, error.reporter);
        if self.counts.len() >= MAX_REPORTS && !self.counts.contains_key(&key) {
            return;
        }
        let count = self.counts.entry(key).or_insert(Count {
            errors: 0,
            mtu: None,
            first_ns: now_ns,
        });
        count.errors += 1;
        count.mtu = [count.mtu, error.mtu].into_iter().flatten().min();
    }

    /// Return what was reported, in the order of the flows.
    pub fn reports(&self) -> Vec<IcmpReport> {
        let reports = self
            .counts
            .iter()
            .map(|(&(flow, kind, reporter), count)| IcmpReport {
                flow,
                kind,
                reporter: reporter.ip(),
                errors: count.errors,
                mtu: count.mtu,
                first_s: count.first_ns as f64 * 1e-9,
            });
        reports.collect()
    }
}
