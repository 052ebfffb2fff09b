//! Samples, the end of the warm-up, and the totals at the end.

use ackclock_units::{Time, PICOSECONDS_PER_SECOND};

use super::connection::Stage;
use super::rows::Row;
use super::Simulation;
use crate::link::Counters;
use crate::record::{Flows, Links, Totals};

impl Simulation {
    /// Samples every active flow and the links; ends the warm-up when its time has come.
    pub(super) fn on_sampler(&mut self) {
        let now = self.now;
        let period = self.plan.record.interval;
        if now.picoseconds().is_multiple_of(period.picoseconds()) {
            self.sample_flows();
            self.sample_links();
        }
        if now >= self.plan.warmup && !self.warmed_up {
            self.end_warmup();
        }
        let sampled =
            Time::from_picoseconds(now.picoseconds() / period.picoseconds() * period.picoseconds());
        let mut next = sampled + period;
        if !self.warmed_up {
            next = next.min(self.plan.warmup);
        }
        self.timers.set(2 * self.flows.len(), next);
    }

    fn sample_flows(&mut self) {
        let samples = &mut self.network.tables.flow_samples;
        for &index in &self.active {
            let Stage::Connection(flow) = &self.flows[index as usize] else {
                continue;
            };
            let sender = &flow.sender;
            if !sender.is_active() {
                continue;
            }
            samples.time_s.push(self.now.seconds());
            samples.flow.push(index);
            samples.cwnd.push(sender.cwnd());
            samples.ssthresh.push(finite(sender.ssthresh()));
            samples
                .srtt_s
                .push(sender.srtt().map_or(f64::NAN, Time::seconds));
            samples.in_flight.push(sender.in_flight());
            samples.delivered_bytes.push(sender.acknowledged_bytes());
        }
    }

    fn sample_links(&mut self) {
        let mut samples = std::mem::take(&mut self.network.tables.queue_samples);
        let interval = self.plan.record.interval;
        for (index, link) in self.network.links_mut().iter_mut().enumerate() {
            if !self.plan.record.all_links && !self.plan.links[index].bottleneck {
                continue;
            }
            let counters = link.counters(self.now);
            let before = std::mem::replace(&mut self.sampled[index], counters);
            let (packets, bytes) = link.backlog();
            let sent_bits = (counters.departed_bytes - before.departed_bytes) as f64 * 8.0;
            samples.time_s.push(self.now.seconds());
            samples.link.push(index as u32);
            samples.backlog_p.push(packets);
            samples.backlog_bytes.push(bytes);
            samples.sojourn_s.push(mean_sojourn(&counters, &before));
            samples
                .departures_p
                .push(counters.departed - before.departed);
            samples.drops_p.push(counters.dropped - before.dropped);
            samples.marks_p.push(counters.marked - before.marked);
            let possible = link.rate().bits_per_second() * interval.seconds();
            samples.utilisation.push(sent_bits / possible);
        }
        self.network.tables.queue_samples = samples;
    }

    fn end_warmup(&mut self) {
        self.warmed_up = true;
        for (index, link) in self.network.links_mut().iter_mut().enumerate() {
            self.links_at_warmup[index] = link.counters(self.now);
            link.clear_sojourns();
        }
        for &index in &self.active {
            if let Stage::Connection(flow) = &mut self.flows[index as usize] {
                flow.at_warmup = flow.snapshot();
            }
        }
    }

    pub(super) fn totals(&mut self) -> Totals {
        Totals {
            flows: self.flow_totals(),
            links: self.link_totals(),
        }
    }

    fn flow_totals(&self) -> Flows {
        let mut rows = Flows::default();
        for (index, stage) in self.flows.iter().enumerate() {
            rows.flow.push(index as u32);
            rows.group.push(self.plan.flows[index].group);
            match stage {
                Stage::Waiting => Row::WAITING.write(&mut rows),
                Stage::Connection(flow) => {
                    Row::of(flow, self.network.gone(index)).write(&mut rows);
                }
                Stage::Over(row) => row.write(&mut rows),
            }
        }
        rows
    }

    fn link_totals(&mut self) -> Links {
        let mut rows = Links::default();
        let measured = self.now.since(self.plan.warmup).as_f64();
        for (index, link) in self.network.links_mut().iter_mut().enumerate() {
            let all = link.counters(self.now);
            let before = self.links_at_warmup[index];
            let plan = &self.plan.links[index];
            rows.link.push(index as u32);
            rows.name.push(plan.name.clone());
            rows.bottleneck.push(plan.bottleneck);
            rows.rate_bps.push(plan.rate.bits_per_second());
            rows.arrived_p.push(all.arrived - before.arrived);
            rows.dropped_p.push(all.dropped - before.dropped);
            rows.lost_p.push(all.lost - before.lost);
            rows.marked_p.push(all.marked - before.marked);
            rows.departed_p.push(all.departed - before.departed);
            rows.departed_bytes
                .push(all.departed_bytes - before.departed_bytes);
            rows.busy_s.push(all.busy.since(before.busy).seconds());
            rows.empty_s.push(all.empty.since(before.empty).seconds());
            rows.backlog_mean_p
                .push((all.packet_time - before.packet_time) as f64 / measured);
            rows.backlog_mean_bytes
                .push((all.byte_time - before.byte_time) as f64 / measured);
            rows.sojourn_mean_s.push(mean_sojourn(&all, &before));
            let sojourns = link.sojourns();
            rows.sojourn_max_s
                .push(sojourns.max().map_or(f64::NAN, Time::seconds));
            let (edges, counts) = sojourns
                .bins()
                .map(|(edge, count)| (edge.seconds(), count))
                .unzip();
            rows.sojourn_edges_s.push(edges);
            rows.sojourn_counts.push(counts);
            rows.arrived_total_p.push(all.arrived);
            rows.dropped_total_p.push(all.dropped);
            rows.lost_total_p.push(all.lost);
            rows.departed_total_p.push(all.departed);
        }
        rows
    }
}

fn finite(value: f64) -> f64 {
    if value.is_finite() {
        value
    } else {
        f64::NAN
    }
}

/// Mean sojourn time between two counts, in seconds; NaN if no packet left the queue.
fn mean_sojourn(now: &Counters, before: &Counters) -> f64 {
    let packets = now.dequeued - before.dequeued;
    if packets == 0 {
        f64::NAN
    } else {
        (now.sojourn_time - before.sojourn_time) / packets as f64 / PICOSECONDS_PER_SECOND as f64
    }
}
