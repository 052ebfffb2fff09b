//! Samples, the end of the warm-up, and the totals at the end.

use ackclock_congestion::CubicState;
use ackclock_core::tables::{CubicSamples, Flows, Links, Totals, NONE};
use ackclock_core::{Time, PICOSECONDS_PER_SECOND};

use super::lifecycle::Stage;
use super::rows::{Description, Row};
use super::transfers::Task;
use super::{Simulation, SAMPLER};
use crate::link::Counters;

/// Number of ended transfers whose rows are collected before they are handed over.
pub(super) const MAX_ENDED: usize = 1 << 16;

impl Simulation {
    /// Sample every active flow and the links; ends the warm-up when its time has come.
    pub(super) fn on_sampler(&mut self) {
        self.network.catch_up(self.now);
        let now = self.plan_time();
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
        self.timers.set(SAMPLER, next.since(self.skipped));
    }

    /// Sample the active flows in their order; generated transfers only if configured.
    fn sample_flows(&mut self) {
        let end = if self.plan.record.traffic {
            u32::MAX
        } else {
            self.first_transfer() as u32
        };
        let cubic = self.plan.record.cubic_state;
        let now = self.plan_time();
        for &number in self.active.range(..end) {
            let stage = &self.stages[self.network.slots().slot_of(number)];
            let (cwnd, ssthresh, srtt, in_flight, delivered_bytes) = match stage {
                Stage::Connection(flow) if flow.sender.is_active() => {
                    let sender = &flow.sender;
                    if let Some(inside) = sender.cubic(self.now).filter(|_| cubic) {
                        let rows = &mut self.network.tables.cubic_samples;
                        write_cubic(now, number, sender.cwnd(), &inside, rows);
                    }
                    (
                        sender.cwnd(),
                        finite(sender.ssthresh()),
                        sender.srtt(),
                        sender.in_flight(),
                        sender.acknowledged_bytes(),
                    )
                }
                Stage::Stream(stream) => match stream.transport() {
                    Some(transport) if transport.is_active() => (
                        transport
                            .datagrams(transport.cwnd_bytes)
                            .unwrap_or(f64::NAN),
                        transport
                            .datagrams(transport.ssthresh_bytes)
                            .unwrap_or(f64::NAN),
                        transport.srtt,
                        transport
                            .datagrams(transport.in_flight_bytes)
                            .map_or(NONE, |packets| packets.ceil() as u32),
                        stream.delivered_bytes(),
                    ),
                    Some(_) => continue,
                    // UDP has no window.
                    None => (
                        f64::NAN,
                        f64::NAN,
                        stream.rtt(),
                        NONE,
                        stream.delivered_bytes(),
                    ),
                },
                _ => continue,
            };
            let samples = &mut self.network.tables.flow_samples;
            samples.time_s.push(now.seconds());
            samples.flow.push(number);
            samples.cwnd.push(cwnd);
            samples.ssthresh.push(ssthresh);
            samples.srtt_s.push(srtt.map_or(f64::NAN, Time::seconds));
            samples.in_flight.push(in_flight);
            samples.delivered_bytes.push(delivered_bytes);
        }
    }

    fn sample_links(&mut self) {
        let mut samples = std::mem::take(&mut self.network.tables.queue_samples);
        let interval = self.plan.record.interval;
        let now = self.plan_time();
        for (index, link) in self.network.links_mut().iter_mut().enumerate() {
            if !self.plan.record.all_links && !self.plan.links[index].bottleneck {
                continue;
            }
            if self
                .share
                .as_ref()
                .is_some_and(|share| !share.owns_link(index))
            {
                continue;
            }
            let counters = link.counters(self.now);
            let before = std::mem::replace(&mut self.sampled[index], counters);
            let (packets, bytes) = self.computed_backlog.unwrap_or_else(|| link.backlog());
            let sent_bits = (counters.departed_bytes - before.departed_bytes) as f64 * 8.0;
            samples.time_s.push(now.seconds());
            samples.link.push(index as u32);
            samples.backlog_p.push(packets);
            samples.backlog_bytes.push(bytes);
            samples.sojourn_s.push(mean_sojourn(&counters, &before));
            samples
                .departures_p
                .push(counters.departed - before.departed);
            samples.drops_p.push(counters.dropped - before.dropped);
            samples.marks_p.push(counters.marked - before.marked);
            let possible = link.capacity_bits(self.now, interval);
            // A packet with no capacity since was counted completely before.
            samples.utilisation.push(if possible > 0.0 {
                sent_bits / possible
            } else {
                f64::NAN
            });
        }
        self.network.tables.queue_samples = samples;
    }

    fn end_warmup(&mut self) {
        self.warmed_up = true;
        for (index, link) in self.network.links_mut().iter_mut().enumerate() {
            self.links_at_warmup[index] = link.counters(self.now);
            link.clear_sojourns();
        }
        for &number in &self.active {
            match &mut self.stages[self.network.slots().slot_of(number)] {
                Stage::Connection(flow) => flow.at_warmup = flow.snapshot(),
                Stage::Stream(stream) => stream.at_warmup = stream.snapshot(),
                Stage::Waiting(_) | Stage::Over(_) | Stage::Vacant => {}
            }
        }
    }

    pub(super) fn totals(&mut self) -> Totals {
        self.network.catch_up(self.now);
        Totals {
            flows: self.flow_totals(),
            links: self.link_totals(),
        }
    }

    /// A row for each flow of the plan, and for each generated transfer that has begun and is not handed over.
    fn flow_totals(&mut self) -> Flows {
        let mut rows = Flows::default();
        for slot in 0..self.first_transfer() {
            if let Some(row) = self.row(slot) {
                self.describe(slot).write(&mut rows);
                row.write(&mut rows);
            }
        }
        let active = self.active.range(self.first_transfer() as u32..);
        let under_way: Vec<_> = active
            .filter_map(|&number| {
                let slot = self.network.slots().slot_of(number);
                let row = self.row(slot)?;
                Some((number, *self.stages[slot].task()?, row))
            })
            .collect();
        self.ended.extend(under_way);
        rows.append(&mut self.take_ended());
        self.hand_over(&mut rows);
        rows
    }

    /// Collect the row of a transfer that has ended.
    pub(super) fn keep(&mut self, number: u32, task: Task, row: Row) {
        self.ended.push((number, task, row));
        if self.ended.len() == MAX_ENDED {
            let mut ready = self.take_ended();
            self.hand_over(&mut ready);
            self.ready = ready;
        }
    }

    /// Write the rows of the transfers that have ended, in the order of their numbers.
    fn hand_over(&mut self, rows: &mut Flows) {
        let mut ended = std::mem::take(&mut self.ended);
        ended.sort_unstable_by_key(|&(number, ..)| number);
        for (number, task, row) in ended.drain(..) {
            self.describe_transfer(number, &task).write(rows);
            row.write(rows);
        }
        self.ended = ended;
    }

    /// Row of the flow in a slot.
    fn row(&self, slot: usize) -> Option<Row> {
        match &self.stages[slot] {
            Stage::Vacant | Stage::Waiting(Some(_)) => None,
            Stage::Waiting(None) if slot >= self.plan.flows.len() => Some(Row::WAITING_STREAM),
            Stage::Waiting(None) => Some(Row::WAITING),
            Stage::Connection(flow) => {
                let gone = self.network.lost_packets(slot);
                Some(self.with_delays(Row::of(flow, gone, self.now), slot))
            }
            Stage::Stream(stream) => {
                let gone = self.network.lost_forward_packets(slot);
                Some(self.with_delays(Row::of_stream(stream, gone), slot))
            }
            Stage::Over(row) => Some(**row),
        }
    }

    /// Row of the flow in a slot, with its delays if they are recorded.
    pub(super) fn with_delays(&self, mut row: Row, slot: usize) -> Row {
        if let Some(delays) = &self.delays {
            row.measured_delays = delays.of(slot);
        }
        row
    }

    /// Description of a flow of the plan.
    fn describe(&mut self, slot: usize) -> Description {
        let (group, ends, size_bytes) = if let Some(plan) = self.plan.flows.get(slot) {
            (plan.group, plan.ends, plan.size_bytes)
        } else {
            let plan = &self.plan.datagrams[slot - self.plan.flows.len()];
            (plan.group, plan.ends, plan.source.size_bytes())
        };
        let flow = slot as u32;
        Description {
            flow,
            group,
            ends,
            base_rtt_s: self.network.base_rtt_s(flow, flow, ends),
            path_rate_bps: self.network.path_rate_bps(flow, flow, ends),
            size_bytes,
        }
    }

    /// Description of a generated transfer.
    fn describe_transfer(&mut self, flow: u32, task: &Task) -> Description {
        let (path, ends) = self.transfers.ends(task);
        Description {
            flow,
            group: self.transfers.common(task).group,
            ends,
            base_rtt_s: self.network.base_rtt_s(flow, path.unwrap_or(NONE), ends),
            path_rate_bps: self.network.path_rate_bps(flow, path.unwrap_or(NONE), ends),
            size_bytes: task.transfer.size_bytes,
        }
    }

    fn link_totals(&mut self) -> Links {
        let mut rows = Links::default();
        let span = self.plan_time().since(self.plan.warmup);
        let measured = span.as_f64();
        let harms: Vec<_> = (0..self.plan.links.len())
            .map(|link| self.network.impairment_counters(link))
            .collect();
        for (index, link) in self.network.links_mut().iter_mut().enumerate() {
            let all = link.counters(self.now);
            let before = self.links_at_warmup[index];
            let plan = &self.plan.links[index];
            rows.link.push(index as u32);
            rows.name.push(plan.name.clone());
            rows.bottleneck.push(plan.bottleneck);
            rows.rate_bps.push(match plan.trace {
                None => plan.rate.bits_per_second(),
                Some(_) => link.capacity_bits(self.now, span) / span.seconds(),
            });
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
            rows.corrupted_total_p.push(harms[index].corrupted);
            rows.duplicated_total_p.push(harms[index].duplicated);
            rows.reordered_total_p.push(harms[index].reordered);
        }
        rows
    }
}

fn write_cubic(now: Time, flow: u32, cwnd: f64, inside: &CubicState, rows: &mut CubicSamples) {
    rows.time_s.push(now.seconds());
    rows.flow.push(flow);
    rows.cwnd.push(cwnd);
    rows.target.push(inside.target);
    rows.w_cubic.push(inside.w_cubic);
    rows.w_max.push(inside.w_max.unwrap_or(f64::NAN));
    rows.origin.push(inside.origin);
    rows.k_s.push(inside.k_s);
    rows.w_est.push(inside.w_est);
    rows.count.push(inside.count.unwrap_or(f64::NAN));
    rows.delay_min_s
        .push(inside.min_rtt.map_or(f64::NAN, Time::seconds));
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
