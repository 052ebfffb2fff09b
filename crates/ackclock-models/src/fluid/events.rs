//! Congestion events: flows hit, times of their reductions, and the earliest next event.

use ackclock_core::tables::{EventKind, Events, NONE};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64Mcg;

use super::growth::{Growth, Moment};
use super::loss_assignment::Candidate;
use super::network::{Network, Rates, Regime, State};
use super::plan::{Cuts, Plan};
use super::record::Epochs;
use super::synchronisation::Overload;
use super::{loss_assignment, random, synchronisation};

/// Smallest window, packets.
pub const MIN_WINDOW: f64 = 1.0;

/// The last event of a queue.
#[derive(Clone, Debug, Default)]
struct Event {
    /// Time at which the last of the flows that it hits has reduced its window.
    closes_s: f64,
    /// P: whom it hits.
    victims: Vec<usize>,
}

/// The two controllers, the queues' events and what is recorded of them.
pub struct Congestion {
    /// Number of flows that an event hits.
    pub synchronisation: synchronisation::Controller,
    victims: loss_assignment::Controller,
    cuts: Cuts,
    random: Pcg64Mcg,
    by_link: Vec<Event>,
    /// Early drops that a flow has yet to expect until its next one.
    until_early: Vec<f64>,
    /// Rows of the dataset.
    pub rows: Events,
    /// A row for each event.
    pub epochs: Epochs,
}

impl Congestion {
    /// Before the first event.
    pub fn new(plan: &Plan, seed: u64) -> Congestion {
        let mut random = random::stream(seed, random::EARLY);
        Congestion {
            synchronisation: synchronisation::Controller::new(&plan.synchronisation, seed),
            victims: loss_assignment::Controller::new(&plan.loss_assignment, seed),
            cuts: plan.cuts,
            by_link: vec![Event::default(); plan.links.len()],
            until_early: plan
                .flows
                .iter()
                .map(|_| Exp1.sample(&mut random))
                .collect(),
            random,
            rows: Events::default(),
            epochs: Epochs::default(),
        }
    }

    /// Open an event at each queue that overflows and has none.
    pub fn open(&mut self, network: &mut Network, state: &State, rates: &Rates, now_s: f64) {
        if self.synchronisation.is_smooth() {
            return;
        }
        for link in 0..network.links.len() {
            if network.regimes[link] == Regime::Full && self.by_link[link].closes_s <= now_s {
                self.open_at(link, network, state, rates, now_s);
            }
        }
    }

    fn open_at(
        &mut self,
        link: usize,
        network: &mut Network,
        state: &State,
        rates: &Rates,
        now_s: f64,
    ) {
        let members = &network.links[link].members;
        let active = members.iter().filter(|&&flow| network.flows[flow].active);
        let active: Vec<usize> = active.copied().collect();
        let free = |flow: &&usize| network.flows[**flow].immune_s <= now_s;
        let candidate = |&flow: &usize| Candidate {
            flow,
            rate_p_s: rates.sent_p_s[flow],
            window_p: state.windows_p[flow],
            growth_p_s: rates.growth_p_s[flow],
        };
        let mut candidates: Vec<Candidate> = active.iter().filter(free).map(candidate).collect();
        self.victims.order(&mut candidates);
        let overload = Overload {
            flows: active.len(),
            free: candidates.len(),
            lost_p: excess_p(&active, network.links[link].rate_p_s, rates, link),
        };
        candidates.truncate(self.synchronisation.flows_hit(overload));
        let hit: Vec<usize> = candidates.iter().map(|one| one.flow).collect();
        self.epochs.push(now_s, link, hit.len(), active.len());
        let lost_p = if self.synchronisation.is_by_losses() {
            overload.lost_p
        } else {
            f64::NAN
        };
        let sent_p_s: f64 = hit.iter().map(|&flow| rates.sent_p_s[flow]).sum();
        for &flow in &hit {
            let own_p = overload.lost_p * rates.sent_p_s[flow] / sent_p_s;
            network.flows[flow].cuts = match self.cuts {
                Cuts::Once => 1.0,
                Cuts::Packets => own_p.max(1.0), // NaN, where nobody sends, is one too
            };
            self.hit(flow, link, network, rates.rtt_s[flow], now_s, lost_p);
        }
        let last_s = hit.iter().map(|&flow| network.flows[flow].reduces_s);
        let immune_s = active.iter().map(|&flow| network.flows[flow].immune_s);
        let closes_s = if hit.is_empty() {
            immune_s.fold(f64::INFINITY, f64::min)
        } else {
            last_s.fold(now_s, f64::max)
        };
        self.by_link[link] = Event {
            closes_s,
            victims: hit,
        };
    }

    /// Record a loss of a flow, which detects it one round trip later. `lost_p` are the event's packets, where they
    /// matter.
    fn hit(
        &mut self,
        flow: usize,
        link: usize,
        network: &mut Network,
        rtt_s: f64,
        now_s: f64,
        lost_p: f64,
    ) {
        let victim = &mut network.flows[flow];
        victim.reduces_s = victim.reduces_s.min(now_s + rtt_s);
        self.rows
            .push(now_s, flow as u32, link as u32, EventKind::Drop, lost_p);
    }

    /// Early drops in a step that ends at `now_s`: a Poisson process of each flow with the rate A k, where k is the
    /// share that the queue drops.
    pub fn drop_early(&mut self, network: &mut Network, rates: &Rates, step_s: f64, now_s: f64) {
        if self.synchronisation.is_smooth() {
            return;
        }
        for link in 0..network.links.len() {
            let probability = network.early[link];
            if probability == 0.0 {
                continue;
            }
            for place in 0..network.links[link].members.len() {
                let flow = network.links[link].members[place];
                self.until_early[flow] -= probability * rates.sent_p_s[flow] * step_s;
                if self.until_early[flow] < 0.0 {
                    self.until_early[flow] = Exp1.sample(&mut self.random);
                    if network.flows[flow].immune_s <= now_s {
                        network.flows[flow].cuts = 1.0;
                        self.hit(flow, link, network, rates.rtt_s[flow], now_s, f64::NAN);
                    }
                }
            }
        }
    }

    /// Flows that share a queue's losses now: those hit by the open event, else all that cross the queue.
    pub fn losing_flows<'a>(
        &'a self,
        link: usize,
        network: &'a Network,
        now_s: f64,
    ) -> &'a [usize] {
        let event = &self.by_link[link];
        let is_there = |&flow: &usize| network.flows[flow].active;
        if event.closes_s >= now_s && event.victims.iter().any(is_there) {
            &event.victims
        } else {
            &network.links[link].members
        }
    }

    /// The next end of an event after `now_s`.
    pub fn next_end_s(&self, now_s: f64) -> f64 {
        let ends = self.by_link.iter().map(|event| event.closes_s);
        ends.filter(|&end_s| end_s > now_s)
            .fold(f64::INFINITY, f64::min)
    }

    /// A flow reduces its window by what it knows to be lost; losses of the round trip that follows do not count.
    pub fn reduce(&mut self, flow: usize, network: &mut Network, state: &mut State, at: &Moment) {
        let victim = &mut network.flows[flow];
        let left_p = cut(victim.law.as_ref(), at, victim.cuts).max(MIN_WINDOW);
        victim.law.lose(at, left_p);
        victim.slow_start = false;
        victim.reduces_s = f64::INFINITY;
        victim.immune_s = at.now_s + at.rtt_s;
        state.windows_p[flow] = left_p;
        self.rows
            .push(at.now_s, flow as u32, NONE, EventKind::Recovery, left_p);
    }
}

/// Window after a number of cuts, each by the law's share of the previous result; of a broken
/// number the rest takes that part of a cut, (1 − b)^rest.
fn cut(law: &dyn Growth, at: &Moment, cuts: f64) -> f64 {
    let mut moment = Moment { ..*at };
    let mut due = cuts;
    while due > 0.0 && moment.window_p > MIN_WINDOW {
        let kept = 1.0 - law.share_removed(&moment);
        moment.window_p *= if due < 1.0 { kept.powf(due) } else { kept };
        due -= 1.0;
    }
    moment.window_p
}

/// Packets that a full queue loses in a mean round trip, (AR − C) R. With ACK clocking that is
/// what their windows grow by in one.
fn excess_p(active: &[usize], rate_p_s: f64, rates: &Rates, link: usize) -> f64 {
    let rtts_s: f64 = active.iter().map(|&flow| rates.rtt_s[flow]).sum();
    (rates.entering_p_s[link] - rate_p_s) * rtts_s / active.len().max(1) as f64
}
