//! The queues of the links: samples and totals from the kernel's counters.

use std::collections::BTreeMap;

use ackclock_core::tables::{Links, QueueSamples, UNKNOWN};
use ackclock_core::Time;
use ackclock_plan::{LinkPlan, QueuePlan};

use crate::error::Tried;
use crate::namespaces::Namespaces;
use crate::netlink::{
    link_request, parse_handle, parse_link, parse_queue, queue_request, Netlink, QueueCounters,
};
use crate::rows::since;
use crate::run_spec::{Device, RunSpec};
use crate::Error;

/// A qdisc that is polled.
#[derive(Debug)]
struct Queue {
    link: u32,
    netlink: usize,
    request: Vec<u8>,
    /// The Ethernet address of its device.
    address: [u8; 6],
    name: String,
    /// True if its bands mark, whose counters are not read.
    marks_in_bands: bool,
    /// The current rate of its link.
    rate_bps: f64,
    /// The busy time of the link in the measurement interval up to the last rate change, and the bytes sent by then.
    busy_s: f64,
    busy_bytes: u64,
    sampled: QueueCounters,
    at_warmup: QueueCounters,
    /// Sums over the samples of the measurement interval.
    backlog_p: u64,
    backlog_bytes: u64,
}

/// Netlink sockets, one in each namespace.
#[derive(Debug, Default)]
struct Sockets {
    open: Vec<Netlink>,
    places: BTreeMap<String, usize>,
}

impl Sockets {
    /// The socket in a namespace, by its place.
    fn in_namespace(&mut self, name: &str, namespaces: &mut Namespaces) -> Result<usize, Error> {
        if let Some(&place) = self.places.get(name) {
            return Ok(place);
        }
        namespaces.enter(name)?;
        let place = self.open.len();
        self.open.push(Netlink::open(None)?);
        self.places.insert(name.to_owned(), place);
        Ok(place)
    }
}

/// All queues, and what loses packets at random.
#[derive(Debug)]
pub struct Queues {
    sockets: Vec<Netlink>,
    disciplines: Vec<Queue>,
    losses: Vec<Queue>,
    /// When the last sample was taken.
    sampled: Time,
    /// Samples of the measurement interval.
    samples: u64,
    warmed_up: bool,
}

/// The fates of packets that a device does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its queue drops them.
    Dropped,
    /// They are lost at random.
    Lost,
}

impl Queues {
    /// Find the devices and their queues.
    pub fn open(run_spec: &RunSpec, namespaces: &mut Namespaces) -> Result<Queues, Error> {
        let mut sockets = Sockets::default();
        let mut all = |devices: &[Device]| -> Result<Vec<Queue>, Error> {
            let mut open = |device: &Device| {
                let link = &run_spec.plan.links[device.link as usize];
                Queue::open(device, link, &mut sockets, namespaces)
            };
            devices.iter().map(&mut open).collect()
        };
        let (disciplines, losses) = (all(&run_spec.queues)?, all(&run_spec.losses)?);
        namespaces.enter("")?;
        Ok(Queues {
            sockets: sockets.open,
            disciplines,
            losses,
            sampled: Time::ZERO,
            samples: 0,
            warmed_up: false,
        })
    }

    /// Return the link of a dropped packet by its device's address, and its fate.
    pub fn origin(&self, address: [u8; 6]) -> Option<(u32, Fate)> {
        let of = |queues: &[Queue]| {
            queues
                .iter()
                .find(|queue| queue.address == address)
                .map(|queue| queue.link)
        };
        let dropped = of(&self.disciplines).map(|link| (link, Fate::Dropped));
        dropped.or_else(|| of(&self.losses).map(|link| (link, Fate::Lost)))
    }

    /// Write a sample of each queue; return what each link has dropped since the last one.
    pub fn sample(
        &mut self,
        time: Time,
        run_spec: &RunSpec,
        rows: &mut QueueSamples,
    ) -> Result<Vec<(u32, u64)>, Error> {
        let mut drops = Vec::new();
        let record = &run_spec.plan.record;
        let elapsed_s = time.since(self.sampled).seconds();
        self.sampled = time;
        for queue in &mut self.disciplines {
            let plan = &run_spec.plan.links[queue.link as usize];
            let now = queue.request(&mut self.sockets)?;
            let before = std::mem::replace(&mut queue.sampled, now);
            if self.warmed_up {
                queue.backlog_p += u64::from(now.backlog_p);
                queue.backlog_bytes += u64::from(now.backlog_bytes);
            }
            drops.push((queue.link, now.dropped_p.saturating_sub(before.dropped_p)));
            if !record.all_links && !plan.bottleneck {
                continue;
            }
            let possible = queue.rate_bps * elapsed_s;
            let sent = now.departed_bytes.saturating_sub(before.departed_bytes);
            rows.time_s.push(time.seconds());
            rows.link.push(queue.link);
            rows.backlog_p.push(now.backlog_p);
            rows.backlog_bytes.push(u64::from(now.backlog_bytes));
            rows.sojourn_s.push(f64::NAN);
            rows.departures_p
                .push(now.departed_p.saturating_sub(before.departed_p));
            rows.drops_p
                .push(now.dropped_p.saturating_sub(before.dropped_p));
            rows.marks_p.push(since(now.marked_p, before.marked_p));
            rows.utilisation.push(ratio(sent as f64 * 8.0, possible));
        }
        self.samples += u64::from(self.warmed_up);
        Ok(drops)
    }

    /// The measured part begins.
    pub fn end_warmup(&mut self) -> Result<(), Error> {
        for queue in self.disciplines.iter_mut().chain(&mut self.losses) {
            queue.at_warmup = queue.request(&mut self.sockets)?;
            queue.busy_s = 0.0;
            queue.busy_bytes = queue.at_warmup.departed_bytes;
        }
        self.warmed_up = true;
        Ok(())
    }

    /// A link has another rate.
    pub fn set_rate(&mut self, link: u32, rate_bps: f64) -> Result<(), Error> {
        for queue in self
            .disciplines
            .iter_mut()
            .filter(|queue| queue.link == link)
        {
            let now = queue.request(&mut self.sockets)?;
            queue.busy_s = queue.busy_until(&now);
            queue.busy_bytes = now.departed_bytes;
            queue.rate_bps = rate_bps;
        }
        Ok(())
    }

    /// The totals of each link of the plan.
    pub fn totals(&mut self, run_spec: &RunSpec) -> Result<Links, Error> {
        let mut rows = Links::default();
        for (index, plan) in run_spec.plan.links.iter().enumerate() {
            let lost = self.lost(index as u32)?;
            let queue = self
                .disciplines
                .iter_mut()
                .find(|queue| queue.link as usize == index);
            rows.link.push(index as u32);
            rows.name.push(plan.name.clone());
            rows.bottleneck.push(plan.bottleneck);
            rows.rate_bps.push(plan.rate.bits_per_second());
            rows.empty_s.push(f64::NAN);
            rows.sojourn_max_s.push(f64::NAN);
            rows.lost_p.push(lost.0);
            rows.lost_total_p.push(lost.1);
            match queue {
                Some(queue) => {
                    let now = queue.request(&mut self.sockets)?;
                    queue.write(&now, self.samples, &mut rows);
                    let measured_s = run_spec.plan.duration.since(run_spec.plan.warmup).seconds();
                    rows.sojourn_mean_s
                        .push(sojourn_mean_s(plan, measured_s, &rows));
                }
                None => write_unknown(&mut rows),
            }
        }
        Ok(rows)
    }

    /// Packets that a link has lost at random: in the measurement interval, and in all.
    fn lost(&mut self, link: u32) -> Result<(u64, u64), Error> {
        let (mut measured, mut total) = (0, 0);
        for loss in self.losses.iter().filter(|loss| loss.link == link) {
            let now = loss.request(&mut self.sockets)?;
            measured += now.dropped_p.saturating_sub(loss.at_warmup.dropped_p);
            total += now.dropped_p;
        }
        Ok((measured, total))
    }
}

impl Queue {
    fn open(
        device: &Device,
        link: &LinkPlan,
        sockets: &mut Sockets,
        namespaces: &mut Namespaces,
    ) -> Result<Queue, Error> {
        let socket = sockets.in_namespace(&device.namespace, namespaces)?;
        let name = format!("{} in {}", device.device, device.namespace);
        let handle = parse_handle(&device.handle).ok_or_else(|| {
            Error::RunSpec(format!(
                "handle {:?} of {name} is invalid; expected 10:",
                device.handle
            ))
        })?;
        let response = sockets.open[socket].request(&name, &link_request(&device.device))?;
        let interface = parse_link(response)
            .ok_or(rustix::io::Errno::NODEV)
            .tried(|| name.clone())?;
        Ok(Queue {
            link: device.link,
            netlink: socket,
            request: queue_request(interface.index, handle),
            address: interface.address,
            name,
            marks_in_bands: marks_in_bands(&link.queue),
            rate_bps: link.rate.bits_per_second(),
            busy_s: 0.0,
            busy_bytes: 0,
            sampled: QueueCounters::default(),
            at_warmup: QueueCounters::default(),
            backlog_p: 0,
            backlog_bytes: 0,
        })
    }

    fn request(&self, sockets: &mut [Netlink]) -> Result<QueueCounters, Error> {
        let response = sockets[self.netlink].request(&self.name, &self.request)?;
        let mut counters = parse_queue(response)
            .ok_or(rustix::io::Errno::BADMSG)
            .tried(|| format!("statistics of {}", self.name))?;
        if self.marks_in_bands {
            counters.marked_p = UNKNOWN;
        }
        Ok(counters)
    }

    /// Return the busy time of the link in the measurement interval.
    fn busy_until(&self, now: &QueueCounters) -> f64 {
        let sent_bytes = now.departed_bytes.saturating_sub(self.busy_bytes);
        self.busy_s + sent_bytes as f64 * 8.0 / self.rate_bps
    }

    /// Write the kernel's counters; times only as far as the counters imply them.
    fn write(&self, now: &QueueCounters, samples: u64, rows: &mut Links) {
        let before = &self.at_warmup;
        let arrived = |of: &QueueCounters| of.departed_p + of.dropped_p + u64::from(of.backlog_p);
        let departed_bytes = now.departed_bytes.saturating_sub(before.departed_bytes);
        rows.arrived_p
            .push(arrived(now).saturating_sub(arrived(before)));
        rows.dropped_p
            .push(now.dropped_p.saturating_sub(before.dropped_p));
        rows.marked_p.push(since(now.marked_p, before.marked_p));
        let departed_p = now.departed_p.saturating_sub(before.departed_p);
        let backlog_mean_p = self.backlog_p as f64 / samples as f64;
        rows.departed_p.push(departed_p);
        rows.departed_bytes.push(departed_bytes);
        rows.busy_s.push(self.busy_until(now));
        rows.backlog_mean_p.push(backlog_mean_p);
        rows.backlog_mean_bytes
            .push(self.backlog_bytes as f64 / samples as f64);
        rows.arrived_total_p.push(arrived(now));
        rows.dropped_total_p.push(now.dropped_p);
        rows.departed_total_p.push(now.departed_p);
    }
}

/// Return the mean sojourn time of the last row's link by Little's law: the mean backlog over the rate of departures
/// and, where the qdisc drops at its head, of drops.
fn sojourn_mean_s(plan: &LinkPlan, measured_s: f64, rows: &Links) -> f64 {
    let last = rows.departed_p.len() - 1;
    let dropped_p = rows.dropped_p[last] * u64::from(drops_at_its_head(&plan.queue));
    let waited_p = rows.departed_p[last] + dropped_p;
    rows.backlog_mean_p[last] * measured_s / waited_p as f64
}

/// Return true if a discipline drops what has waited, and not what arrives.
fn drops_at_its_head(queue: &QueuePlan) -> bool {
    match queue.discipline.as_str() {
        "codel" | "fq_codel" | "spa" => true,
        "sfq" => queue.parameters["headdrop"] == true,
        _ => false,
    }
}

/// Return true if it is made of bands that mark: CoDel's, where it may.
fn marks_in_bands(queue: &QueuePlan) -> bool {
    queue.discipline == "spa" && queue.parameters["ecn"] == true
}

/// Return a ratio, 0 for an empty interval: the first sample has none before it.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole
    } else {
        0.0
    }
}

/// A link without a queue of its own.
fn write_unknown(rows: &mut Links) {
    for counts in [
        &mut rows.arrived_p,
        &mut rows.dropped_p,
        &mut rows.marked_p,
        &mut rows.departed_p,
        &mut rows.departed_bytes,
        &mut rows.arrived_total_p,
        &mut rows.dropped_total_p,
        &mut rows.departed_total_p,
    ] {
        counts.push(UNKNOWN);
    }
    for times in [
        &mut rows.busy_s,
        &mut rows.backlog_mean_p,
        &mut rows.backlog_mean_bytes,
        &mut rows.sojourn_mean_s,
    ] {
        times.push(f64::NAN);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(discipline: &str, parameters: serde_json::Value) -> QueuePlan {
        QueuePlan {
            discipline: discipline.to_owned(),
            parameters,
        }
    }

    #[test]
    fn sfq_drops_have_a_sojourn_time_with_headdrop() {
        for headdrop in [false, true] {
            let sfq = plan("sfq", json!({"headdrop": headdrop}));
            assert_eq!(drops_at_its_head(&sfq), headdrop);
        }
        assert!(drops_at_its_head(&plan("codel", json!({}))));
        assert!(!drops_at_its_head(&plan("pfifo", json!({}))));
    }

    #[test]
    fn head_drops_count_in_the_mean_sojourn() {
        let mut link: LinkPlan = serde_json::from_value(json!({
            "name": "bottleneck", "ends": null, "rate_bps": 1e8, "delay_s": 0.0, "weight": 1.0, "burst_bytes": null,
            "frame_overhead_bytes": 14, "queue": {"discipline": "sfq", "parameters": {"headdrop": true}}, "loss": null, "medium": null, "trace": null,
            "bottleneck": true,
        }))
        .expect("a link");
        let rows = Links {
            departed_p: vec![900],
            dropped_p: vec![100],
            backlog_mean_p: vec![50.0],
            ..Links::default()
        };
        assert!((sojourn_mean_s(&link, 10.0, &rows) - 0.5).abs() < 1e-12);
        link.queue.parameters = json!({"headdrop": false});
        assert!((sojourn_mean_s(&link, 9.0, &rows) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn marks_of_bands_are_unknown() {
        assert!(marks_in_bands(&plan("spa", json!({"ecn": true}))));
        assert!(!marks_in_bands(&plan("spa", json!({"ecn": false}))));
        assert!(!marks_in_bands(&plan("codel", json!({"ecn": true}))));
    }
}
