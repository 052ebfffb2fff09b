//! Leaps of the `hybrid` engine: past round trips in which no packet matters.
//!
//! Between losses a drop-tail bottleneck with window-based senders changes smoothly. When that has been so for a round
//! trip, the packets in flight stay where they are, the engine's clock stands still, and the plan's clock goes on in
//! steps of a fraction of a round trip: each controller gets the step's ACKs as one batch, the queue follows from the
//! windows, and counters and samples get what the step stands for.
//!
//! ```text
//!             a quiet round trip, and room in the queue
//!   packets ─────────────────────────────────────────────▶ leap: windows, queue, counters by steps
//!      ▲                                                                        │
//!      └──── a flow starts or stops, the queue comes near its limit ────────────┘
//!            (the windows' growth is released within a window)
//! ```
//!
//! A round trip is quiet if nothing was dropped in it and every flow is an endless transfer in congestion avoidance with
//! nothing SACKed, lost or retransmitted. So who loses, and what follows, is always decided by packets.
//!
//! Sources of the idea: J. Liu et al. on fluid and packets in one simulation (MASCOTS 2001 and later); Wormhole (NSDI
//! 2026) skips steady states of data centre networks that it has seen before. Deviation: nothing is memoised; the
//! windows come from the controllers' own code.

use std::collections::VecDeque;

use ackclock_core::Time;

use super::lifecycle::Stage;
use super::{sender_timer, Simulation, SAMPLER};
use crate::link::Skipped;
use crate::sender::Batch;

mod bottleneck;
mod watch;

use bottleneck::{base_rtt, Bottleneck};
use watch::{Observation, Pattern, Watch};

/// Index of the only link.
const LINK: usize = 0;
/// Observations in a round trip, and while the flows are not quiet.
const OBSERVATIONS: f64 = 16.0;
const IDLE_OBSERVATIONS: f64 = 4.0;
/// Steps in a round trip: windows and queue change little within one.
const STEPS: f64 = 4.0;
/// A leap of fewer round trips is not worth its release.
const MIN_ROUNDS: f64 = 3.0;
/// Round trips whose growth of the windows is kept free in the queue: that of the release, and another.
const RELEASE_ROUNDS: f64 = 2.0;
/// Round trips whose growth is kept free for the queue's chance variation, up to so many packets.
const MARGIN_ROUNDS: f64 = 2.0;
const MAX_CHANCE_P: f64 = 64.0;
/// Packets that are kept free at least.
const MIN_MARGIN_P: f64 = 4.0;
/// Share of the leap's growth that is kept free: the pattern of a round trip changes a little with it.
const MARGIN_GROWTH: f64 = 0.005;
/// Share of what the link could have sent more before the leap that is kept free: once it is filled, the pattern is
/// another.
const MARGIN_IDLE: f64 = 0.1;
/// Part of the queue's variation within a round trip that is kept free above its observed peak.
const MARGIN_VARIATION: f64 = 0.5;
/// Flows are steady if what they send is what their windows allow, up to this share.
const STEADY: f64 = 0.25;

/// When to leap, and the leap that is going on.
pub struct Leaps {
    bottleneck: Bottleneck,
    watch: Watch,
    /// Packets that the queue had dropped at the last observation.
    dropped: u64,
    /// Time of the next observation, by the engine's clock.
    next_observation: Time,
    leap: Option<Leap>,
    /// Time up to which the run has been asked for, by the plan's clock.
    reached: Time,
    /// Leaps so far.
    pub count: u64,
}

/// A leap.
struct Leap {
    flows: Vec<LeapFlow>,
    pattern: Pattern,
    /// Sums of what the windows let be in flight before it and now, in packets.
    in_flight_before_p: f64,
    in_flight_p: f64,
    /// The windows at times of the last round trip, by the plan's clock.
    recent: VecDeque<(Time, f64)>,
    /// Queueing delay that follows from these, s.
    delay_s: f64,
    /// Its beginning, and its end at the latest, by the plan's clock.
    start: Time,
    horizon: Time,
}

/// A flow in a leap.
struct LeapFlow {
    slot: usize,
    base_rtt_s: f64,
    window: f64,
    /// Segments that the window has room for and that are not in flight on average: a sender waits for more to make a
    /// batch.
    unused: f64,
    /// The window at which the receiver's would limit it.
    max_window: f64,
    /// Part of a segment that earlier steps have delivered.
    credit: f64,
}

impl Leaps {
    /// The leaps of a plan; `None` if they are impossible in it.
    pub fn of_plan(plan: &ackclock_plan::Plan) -> Option<Box<Leaps>> {
        if !plan.changes.is_empty() {
            return None;
        }
        Some(Box::new(Leaps {
            bottleneck: Bottleneck::of_plan(plan)?,
            watch: Watch::default(),
            dropped: 0,
            next_observation: Time::ZERO,
            leap: None,
            reached: Time::ZERO,
            count: 0,
        }))
    }

    /// Time up to which the run has been asked for while a leap goes on.
    pub fn reached(&self) -> Time {
        self.reached
    }

    /// Handle what happens up to `until` by the plan's clock, but at most `max_events` events between two observations; returns
    /// whether all of it has been handled. A step of a leap that ends later is left for later calls.
    fn advance(&mut self, run: &mut Simulation, until: Time, max_events: u32) -> bool {
        loop {
            if let Some(leap) = &mut self.leap {
                if !leap.run(run, &self.bottleneck, until) {
                    self.reached = until;
                    return true;
                }
                leap.end(run);
                self.leap = None;
                self.watch.clear();
                self.next_observation = run.now;
            }
            let end = until.since(run.skipped);
            if !run.handle_events(end.min(self.next_observation), max_events) {
                return false;
            }
            if self.next_observation > end {
                return true;
            }
            self.observe(run);
        }
    }

    /// Observation at the bottleneck, and begin a leap if the last round trip was quiet and the next ones will be.
    fn observe(&mut self, run: &mut Simulation) {
        let link = &mut run.network.links_mut()[LINK];
        let peak_p = f64::from(link.take_peak());
        let (counters, (backlog_p, _)) = (link.counters(run.now), link.backlog());
        let backlog_p = f64::from(backlog_p);
        let queueing_s = self.bottleneck.drain_s(backlog_p + 1.0);
        let round_trip = Time::from_seconds(self.bottleneck.base_rtt_s + queueing_s);
        let has_dropped =
            std::mem::replace(&mut self.dropped, counters.dropped) != counters.dropped;
        let windows = run.quiet_windows().filter(|_| !has_dropped);
        let observations = if windows.is_some() {
            OBSERVATIONS
        } else {
            IDLE_OBSERVATIONS
        };
        self.next_observation = run.now + round_trip.scaled(1.0 / observations);
        let Some(window_p) = windows else {
            return self.watch.clear();
        };
        let observation = Observation {
            time: run.now,
            arrived: counters.arrived,
            backlog_p,
            peak_p,
            window_p,
        };
        self.watch.add(observation, round_trip);
        if let Some(pattern) = self.watch.pattern(round_trip, self.bottleneck.rate) {
            self.leap = Leap::begin(run, &self.bottleneck, pattern, round_trip);
            self.count += u64::from(self.leap.is_some());
        }
    }
}

impl Leap {
    /// A leap from the present state, if it is steady and there is room for some round trips.
    fn begin(
        run: &Simulation,
        bottleneck: &Bottleneck,
        pattern: Pattern,
        round_trip: Time,
    ) -> Option<Leap> {
        let measured = pattern.measured();
        let queueing_s = bottleneck.drain_s(measured.mean_p + 1.0);
        let mut flows = run.leap_flows();
        let rates = flows
            .iter()
            .map(|flow| flow.window / (flow.base_rtt_s + queueing_s));
        let used = pattern.rate() / rates.sum::<f64>();
        for flow in &mut flows {
            flow.unused = (1.0 - used) * flow.window;
        }
        let start = run.plan_time();
        let mut leap = Leap {
            flows,
            pattern,
            in_flight_before_p: 0.0,
            in_flight_p: 0.0,
            recent: VecDeque::new(),
            delay_s: 0.0,
            start,
            horizon: run.next_start_or_stop(),
        };
        leap.update(bottleneck);
        leap.in_flight_before_p = leap.in_flight_p;
        let margin_p = leap.margin_p(leap.pattern.growth_p);
        let room_p = bottleneck.limit_p - measured.peak_p - margin_p;
        let lasts = leap.horizon >= start + round_trip.scaled(MIN_ROUNDS);
        let is_steady = (1.0 - used).abs() <= STEADY;
        (lasts && is_steady && room_p > MIN_ROUNDS * leap.pattern.growth_p).then_some(leap)
    }

    /// Update what follows from the windows.
    fn update(&mut self, bottleneck: &Bottleneck) {
        let flows = self
            .flows
            .iter()
            .map(|flow| (flow.in_flight(), flow.base_rtt_s));
        self.in_flight_p = flows.clone().map(|(in_flight, _)| in_flight).sum();
        self.delay_s = bottleneck.queueing_delay_s(&flows, 0.0);
    }

    /// Go on up to `until` by the plan's clock; returns whether the leap has ended.
    fn run(&mut self, run: &mut Simulation, bottleneck: &Bottleneck, until: Time) -> bool {
        while let Some((step, backlog_p)) = self.next_step(run, bottleneck) {
            if run.plan_time() + step > until {
                return false;
            }
            self.take(run, bottleneck, step, backlog_p);
        }
        true
    }

    /// Duration of the next step and the mean backlog in it, in packets; `None` if packets must decide.
    fn next_step(&self, run: &Simulation, bottleneck: &Bottleneck) -> Option<(Time, f64)> {
        let now = run.plan_time();
        let queue = self
            .pattern
            .queue(self.in_flight_p / self.in_flight_before_p);
        let is_limited = self.flows.iter().any(|flow| flow.window >= flow.max_window);
        let margin_p = self.margin_p(self.round_growth_p());
        if now >= self.horizon || is_limited || queue.peak_p + margin_p > bottleneck.limit_p {
            return None;
        }
        let by_windows_p = self.delay_s * bottleneck.rate;
        let backlog_p = by_windows_p
            .max(queue.mean_p)
            .clamp(0.0, bottleneck.limit_p);
        let shortest_s = self.flows.iter().map(|flow| flow.base_rtt_s);
        let shortest_s = shortest_s.fold(f64::INFINITY, f64::min);
        let step_s = (shortest_s + bottleneck.drain_s(backlog_p)) / STEPS;
        let step = Time::from_seconds(step_s).max(Time::from_picoseconds(1));
        let sample = run.timers.time(SAMPLER).since(run.now);
        Some((step.min(sample).min(self.horizon.since(now)), backlog_p))
    }

    /// Take a step: the flows share the link by their windows and round-trip times.
    fn take(&mut self, run: &mut Simulation, bottleneck: &Bottleneck, step: Time, backlog_p: f64) {
        let queueing_s = bottleneck.drain_s(backlog_p + 1.0);
        let rates = self.flows.iter();
        let sum: f64 = rates
            .map(|flow| flow.in_flight() / (flow.base_rtt_s + queueing_s))
            .sum();
        let scale = if self.delay_s > 0.0 {
            bottleneck.rate / sum
        } else {
            (bottleneck.rate / sum).min(1.0)
        };
        let mut packets = 0;
        for flow in &mut self.flows {
            let rtt_s = flow.base_rtt_s + queueing_s;
            flow.credit += scale * flow.in_flight() / rtt_s * step.seconds();
            let segments = flow.credit as u32;
            flow.credit -= f64::from(segments);
            packets += u64::from(segments);
            if let Stage::Connection(connection) = &mut run.stages[flow.slot] {
                let batch = Batch {
                    segments,
                    acks: connection.receiver.skip(segments),
                    rtt: Time::from_seconds(rtt_s),
                };
                connection.sender.skip(run.now, step, &batch);
                flow.window = connection.sender.window_segments().into();
            }
        }
        run.network.links_mut()[LINK].skip(&Skipped {
            span: step,
            packets,
            wire_bytes: bottleneck.wire_bytes,
            backlog_p,
            sojourn: Time::from_seconds(bottleneck.drain_s(backlog_p)),
        });
        self.update(bottleneck);
        let round_trip = Time::from_seconds(bottleneck.base_rtt_s + queueing_s);
        self.recent.push_back((run.plan_time(), self.in_flight_p));
        while self.recent.len() > 2 && run.plan_time().since(self.recent[1].0) >= round_trip {
            self.recent.pop_front();
        }
        run.skip_time(step, backlog_p, bottleneck);
    }

    /// End the leap: flows release what their windows have grown by, and what is to happen is as far ahead as before.
    fn end(&self, run: &mut Simulation) {
        let leap = run.plan_time().since(self.start);
        run.computed_backlog = None;
        for slot in 0..run.stages.len() {
            let timer = sender_timer(slot);
            match &mut run.stages[slot] {
                Stage::Connection(connection) => {
                    connection.sender.end_leap(leap);
                    run.timers.advance(timer, connection.sender.wake());
                }
                Stage::Waiting(_) => {
                    let start = run.timers.time(timer);
                    run.timers.set(timer, start.since(leap));
                }
                Stage::Stream(_) | Stage::Over(_) | Stage::Vacant => {}
            }
        }
    }

    /// Packets by which the windows grew in the last round trip.
    fn round_growth_p(&self) -> f64 {
        let first = self.recent.front();
        let growth_p = first.map_or(0.0, |(_, in_flight_p)| self.in_flight_p - in_flight_p);
        growth_p.max(0.0)
    }

    /// Packets to be kept free above the observed peak, if the windows grow by `growth_p` in a round trip.
    fn margin_p(&self, growth_p: f64) -> f64 {
        let measured = self.pattern.measured();
        let variation_p = MARGIN_VARIATION * (measured.peak_p - measured.mean_p);
        let chance_p = (MARGIN_ROUNDS * growth_p)
            .min(MAX_CHANCE_P)
            .max(variation_p);
        let grown_p = (self.in_flight_p - self.in_flight_before_p).max(0.0);
        let reshaped_p = MARGIN_GROWTH * grown_p + MARGIN_IDLE * self.pattern.idle_p().min(grown_p);
        RELEASE_ROUNDS * growth_p + chance_p.max(MIN_MARGIN_P) + reshaped_p
    }
}

impl LeapFlow {
    /// Segments in flight on average.
    fn in_flight(&self) -> f64 {
        self.window - self.unused
    }
}

impl Simulation {
    /// Let the run leap past round trips in which no packet matters, where the plan allows it: the `hybrid` engine.
    pub fn enable_leaps(&mut self) {
        self.leaps = Leaps::of_plan(&self.plan);
    }

    /// Leaps so far, and the time that they have skipped.
    pub fn leaps(&self) -> (u64, Time) {
        let count = self.leaps.as_ref().map_or(0, |leaps| leaps.count);
        (count, self.skipped)
    }

    /// The plan's clock, which is ahead of the engine's by what leaps have skipped.
    pub(super) fn plan_time(&self) -> Time {
        self.now + self.skipped
    }

    /// Handle what happens up to `until` by the plan's clock, as [`Simulation::advance_within`] does, with leaps.
    pub(super) fn advance_with_leaps(&mut self, until: Time, max_events: u32) -> bool {
        let Some(mut leaps) = self.leaps.take() else {
            return true;
        };
        let is_done = leaps.advance(self, until, max_events);
        self.leaps = Some(leaps);
        is_done
    }

    /// Sum of the windows of the active flows, if there are some and all are quiet.
    fn quiet_windows(&self) -> Option<f64> {
        let mut sum = 0.0;
        for &number in &self.active {
            let slot = self.network.slots().slot_of(number);
            match &self.stages[slot] {
                Stage::Connection(flow)
                    if flow.task.is_none()
                        && flow.sender.is_quiet()
                        && flow.receiver.is_quiet() =>
                {
                    sum += f64::from(flow.sender.window_segments());
                }
                _ => return None,
            }
        }
        (sum > 0.0).then_some(sum)
    }

    /// The active flows, all of which are quiet.
    fn leap_flows(&self) -> Vec<LeapFlow> {
        let flows = self.active.iter().filter_map(|&number| {
            let slot = self.network.slots().slot_of(number);
            let Stage::Connection(flow) = &self.stages[slot] else {
                return None;
            };
            let window = f64::from(flow.sender.window_segments());
            Some(LeapFlow {
                slot,
                base_rtt_s: base_rtt(&self.plan.flows[slot]).seconds(),
                window,
                unused: 0.0,
                max_window: window + flow.sender.receiver_room() as f64,
                credit: 0.0,
            })
        });
        flows.collect()
    }

    /// The next time at which a flow starts or stops, or the run ends, by the plan's clock.
    fn next_start_or_stop(&self) -> Time {
        let times = self.stages.iter().enumerate().map(|(slot, stage)| {
            let due = match stage {
                Stage::Waiting(_) => self.timers.time(sender_timer(slot)),
                Stage::Connection(flow) => flow.sender.stops_at(),
                Stage::Stream(_) | Stage::Over(_) | Stage::Vacant => Time::NEVER,
            };
            if due.is_never() {
                due
            } else {
                due + self.skipped
            }
        });
        times.fold(self.plan.duration, Time::min)
    }

    /// Let time pass in which the engine's clock stands still; take a sample if one is due.
    fn skip_time(&mut self, step: Time, backlog_p: f64, bottleneck: &Bottleneck) {
        self.skipped += step;
        self.network.set_skipped(self.skipped);
        let packets = backlog_p.round() as u32;
        self.computed_backlog = Some((
            packets,
            u64::from(packets) * u64::from(bottleneck.wire_bytes),
        ));
        let sample = self.timers.time(SAMPLER).since(step);
        self.timers.set(SAMPLER, sample);
        if sample <= self.now {
            self.on_sampler();
        }
    }
}
