//! Ledger of a run: counts, samples and results.

use super::counters::{FlowCounters, LinkCounters, Sojourns};
use super::network::{Network, Rates, Regime, State};
use super::plan::Plan;
use super::record::{FlowSamples, Flows, Links, QueueSamples};

/// A step that was taken: where it began and ended, and the rates at both.
pub struct Step<'a> {
    /// Its beginning.
    pub from_s: f64,
    /// Its length.
    pub length_s: f64,
    /// The rates at its beginning.
    pub first: &'a Rates,
    /// The rates at its end, the regimes of the beginning in force.
    pub second: &'a Rates,
    /// Windows and backlogs at its beginning.
    pub before: &'a State,
}

impl Step<'_> {
    /// The integral of a rate over the step (trapezoidal rule, as the equations are integrated).
    fn over(&self, first: f64, second: f64) -> f64 {
        self.length_s / 2.0 * (first + second)
    }
}

/// The books of all flows and links.
pub struct Ledger {
    flows: Vec<FlowCounters>,
    links: Vec<LinkCounters>,
    sojourns: Vec<Sojourns>,
    flows_before: Vec<FlowCounters>,
    links_before: Vec<LinkCounters>,
    interval_s: f64,
    samples: u64,
    flow_samples: FlowSamples,
    queue_samples: QueueSamples,
}

impl Ledger {
    /// Empty books.
    pub fn new(plan: &Plan, network: &Network) -> Ledger {
        Ledger {
            flows: vec![FlowCounters::default(); plan.flows.len()],
            links: vec![LinkCounters::default(); plan.links.len()],
            sojourns: sojourns(network),
            flows_before: vec![FlowCounters::default(); plan.flows.len()],
            links_before: vec![LinkCounters::default(); plan.links.len()],
            interval_s: plan.interval_s.unwrap_or(f64::INFINITY),
            samples: 0,
            flow_samples: FlowSamples::default(),
            queue_samples: QueueSamples::default(),
        }
    }

    /// The measured part begins.
    pub fn end_warmup(&mut self, network: &Network) {
        self.flows_before.clone_from(&self.flows);
        self.links_before.clone_from(&self.links);
        self.sojourns = sojourns(network);
    }

    /// A flow reduced its window.
    pub fn recover(&mut self, flow: usize) {
        self.flows[flow].recoveries += 1;
    }

    /// Counts what the flows did in a step.
    pub fn count_flows(&mut self, step: &Step, network: &Network, after: &State) {
        let Step { first, second, .. } = step;
        for (flow, book) in self.flows.iter_mut().enumerate() {
            if network.flows[flow].active {
                let (before_p, after_p) = (step.before.windows_p[flow], after.windows_p[flow]);
                book.sent_p += step.over(first.sent_p_s[flow], second.sent_p_s[flow]);
                book.delivered_p +=
                    step.over(first.delivered_p_s[flow], second.delivered_p_s[flow]);
                book.window_p_s += step.over(before_p, after_p);
                book.rtt_s2 += step.over(first.rtt_s[flow], second.rtt_s[flow]);
                book.active_s += step.length_s;
            }
        }
    }

    /// Counts what a queue did in a step and moves its backlog; returns what overflowed.
    ///
    /// A step ends where a queue is full or empty, up to rounding. What little is beyond is lost,
    /// or was not there to leave, so that packets balance.
    pub fn count_link(&mut self, link: usize, step: &Step, network: &Network, q: &mut f64) -> f64 {
        let (first, second) = (step.first, step.second);
        let (rate, limit) = (network.links[link].rate_p_s, network.links[link].limit_p);
        let arrived = step.over(first.arriving_p_s[link], second.arriving_p_s[link]);
        let entered = step.over(first.entering_p_s[link], second.entering_p_s[link]);
        let before = *q;
        let empty = network.regimes[link] == Regime::Empty;
        let served = if empty { entered } else { rate * step.length_s };
        let left = before + entered - served;
        *q = left.clamp(0.0, limit);
        let overflow = (left - limit).max(0.0);
        let departed = served + left.min(0.0);
        let sojourn_s = f64::midpoint(before, *q) / rate;
        let book = &mut self.links[link];
        book.arrived_p += arrived;
        book.dropped_p += arrived - entered + overflow;
        book.departed_p += departed;
        book.busy_s += (departed / rate).min(step.length_s);
        book.empty_s += if empty { step.length_s } else { 0.0 };
        book.backlog_p_s += step.over(before, *q);
        book.sojourn_p_s += departed * sojourn_s;
        self.sojourns[link].add(sojourn_s, departed);
        arrived - entered + overflow
    }

    /// Charge a link's losses to the flows that share them, in proportion to their rates.
    pub fn charge(&mut self, lost_p: f64, losing_flows: &[usize], rates: &Rates) {
        let all: f64 = losing_flows.iter().map(|&flow| rates.sent_p_s[flow]).sum();
        if all > 0.0 {
            for &flow in losing_flows {
                self.flows[flow].dropped_p += lost_p * rates.sent_p_s[flow] / all;
            }
        }
    }

    /// The samples that fall into a step, interpolated between its ends: sampling moves no step.
    pub fn sample(&mut self, step: &Step, network: &Network, after: &State) {
        let end_s = step.from_s + step.length_s;
        while self.samples as f64 * self.interval_s <= end_s {
            let time_s = self.samples as f64 * self.interval_s;
            let left = ((end_s - time_s) / step.length_s).clamp(0.0, 1.0);
            self.sample_flows(time_s, left, step, network, after);
            self.sample_links(time_s, left, step, network, after);
            self.samples += 1;
        }
    }

    fn sample_flows(&mut self, time_s: f64, left: f64, step: &Step, net: &Network, after: &State) {
        let mix = |before: f64, after: f64| after + (before - after) * left;
        for (flow, book) in self.flows.iter().enumerate() {
            if !net.flows[flow].active {
                continue;
            }
            let (first, second) = (step.first, step.second);
            let rate = mix(first.delivered_p_s[flow], second.delivered_p_s[flow]);
            let rate = f64::midpoint(rate, second.delivered_p_s[flow]);
            let rows = &mut self.flow_samples;
            rows.time_s.push(time_s);
            rows.flow.push(flow as u32);
            rows.cwnd
                .push(mix(step.before.windows_p[flow], after.windows_p[flow]));
            rows.srtt_s.push(mix(first.rtt_s[flow], second.rtt_s[flow]));
            rows.delivered_p
                .push(book.delivered_p - rate * left * step.length_s);
        }
    }

    fn sample_links(&mut self, time_s: f64, left: f64, step: &Step, net: &Network, after: &State) {
        let mix = |before: f64, after: f64| after + (before - after) * left;
        let ago_s = left * step.length_s;
        for (link, book) in self.links.iter().enumerate() {
            let entering = step.second.entering_p_s[link];
            let rate = net.links[link].rate_p_s;
            let (served, lost) = match net.regimes[link] {
                Regime::Empty => (entering, 0.0),
                Regime::Between => (rate, 0.0),
                Regime::Full => (rate, entering - rate),
            };
            let rows = &mut self.queue_samples;
            rows.time_s.push(time_s);
            rows.link.push(link as u32);
            rows.backlog_p
                .push(mix(step.before.backlogs_p[link], after.backlogs_p[link]));
            rows.departed_p
                .push((book.departed_p - served * ago_s).max(0.0));
            rows.dropped_p
                .push((book.dropped_p - lost * ago_s).max(0.0));
        }
    }

    /// The tables of samples.
    pub fn take_samples(&mut self) -> (FlowSamples, QueueSamples) {
        (
            std::mem::take(&mut self.flow_samples),
            std::mem::take(&mut self.queue_samples),
        )
    }

    /// Totals of the flows; NaN where a flow was not there.
    pub fn flows(&self, network: &Network, now_s: f64) -> Flows {
        let mut rows = Flows::default();
        for (flow, book) in self.flows.iter().enumerate() {
            let measured = book.since(&self.flows_before[flow]);
            let of = &network.flows[flow];
            let (start_s, stop_s) = (of.start_s, of.stop_s.max(of.start_s));
            rows.start_s.push(value_or_nan(start_s, start_s < now_s));
            rows.end_s.push(value_or_nan(stop_s, stop_s <= now_s));
            rows.sent_p.push(book.sent_p);
            rows.delivered_p.push(book.delivered_p);
            rows.dropped_p.push(book.dropped_p);
            rows.recoveries.push(book.recoveries);
            rows.measured_sent_p.push(measured.sent_p);
            rows.measured_delivered_p.push(measured.delivered_p);
            rows.window_mean_p
                .push(measured.window_p_s / measured.active_s);
            rows.rtt_mean_s.push(measured.rtt_s2 / measured.active_s);
        }
        rows
    }

    /// Totals of the links.
    pub fn links(&self, state: &State, measured_s: f64) -> Links {
        let mut rows = Links::default();
        for (link, book) in self.links.iter().enumerate() {
            let measured = book.since(&self.links_before[link]);
            let (edges_s, counts) = self.sojourns[link].bins();
            rows.arrived_p.push(measured.arrived_p);
            rows.dropped_p.push(measured.dropped_p);
            rows.departed_p.push(measured.departed_p);
            rows.busy_s.push(measured.busy_s);
            rows.empty_s.push(measured.empty_s);
            rows.backlog_mean_p.push(measured.backlog_p_s / measured_s);
            rows.sojourn_mean_s
                .push(measured.sojourn_p_s / measured.departed_p);
            rows.sojourn_max_s.push(self.sojourns[link].max_s);
            rows.sojourn_edges_s.push(edges_s);
            rows.sojourn_counts.push(counts);
            rows.arrived_total_p.push(book.arrived_p);
            rows.dropped_total_p.push(book.dropped_p);
            rows.departed_total_p.push(book.departed_p);
            rows.backlog_end_p.push(state.backlogs_p[link]);
        }
        rows
    }
}

fn sojourns(network: &Network) -> Vec<Sojourns> {
    let longest_s = network
        .links
        .iter()
        .map(|link| link.limit_p / link.rate_p_s);
    longest_s.map(Sojourns::new).collect()
}

fn value_or_nan(value: f64, exists: bool) -> f64 {
    if exists {
        value
    } else {
        f64::NAN
    }
}
