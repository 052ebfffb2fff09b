//! One-way delays of data packets, if they are recorded.
//!
//! A packet's delay is from the moment at which its sender's TCP or UDP sent it, this very copy of it, to that of its
//! arrival: queues, transmissions and propagation. It is counted in the interval of the samples in which it arrives, by
//! the receiver's own clock; what arrives after the end of the run is not. The distribution is that of the measured
//! part.

use ackclock_core::tables::Delays as Rows;
use ackclock_core::Time;
use ackclock_plan::Plan;

use crate::histogram::Histogram;
use crate::packet::Packet;

/// The 95th percentile is reported.
const HIGH: f64 = 0.95;

/// The delays of all flows.
pub struct Delays {
    interval: Time,
    warmup: Time,
    end: Time,
    /// Delays by flow slot.
    flows: Vec<Option<Box<Flow>>>,
    rows: Rows,
}

/// Delays of one flow.
struct Flow {
    number: u32,
    measured: Histogram,
    /// The present interval, and the delays in it.
    present: u64,
    arrived: Arrived,
}

/// Delays of the packets that arrived in an interval.
#[derive(Clone, Copy)]
struct Arrived {
    packets: u32,
    least: Time,
    sum: u128,
    most: Time,
}

impl Arrived {
    const NONE: Arrived = Arrived {
        packets: 0,
        least: Time::NEVER,
        sum: 0,
        most: Time::ZERO,
    };
}

impl Delays {
    /// Make the recorder of a plan that records delays.
    pub fn of_plan(plan: &Plan) -> Option<Box<Delays>> {
        let delays = Delays {
            interval: plan.record.interval,
            warmup: plan.warmup,
            end: plan.duration,
            flows: Vec::new(),
            rows: Rows::default(),
        };
        plan.record.delays.then(|| Box::new(delays))
    }

    /// Record the arrival of a packet of the flow in a slot.
    pub fn on_arrival(&mut self, slot: usize, packet: &Packet, now: Time) {
        if !packet.kind.carries_payload() || now > self.end {
            return;
        }
        if slot >= self.flows.len() {
            self.flows.resize_with(slot + 1, || None);
        }
        let flow = self.flows[slot].get_or_insert_with(|| Box::new(Flow::new(packet.flow)));
        let delay = now.since(packet.timestamp);
        let interval = now.picoseconds().div_ceil(self.interval.picoseconds());
        if interval > flow.present {
            flow.close(self.interval, self.end, &mut self.rows);
            flow.present = interval;
        }
        flow.arrived.add(delay);
        if now > self.warmup {
            flow.measured.record(delay);
        }
    }

    /// Mean and 95th percentile of the flow in a slot so far.
    pub fn of(&self, slot: usize) -> (Time, Time) {
        let flow = self.flows.get(slot).and_then(Option::as_ref);
        let found =
            flow.and_then(|flow| Some((flow.measured.mean()?, flow.measured.quantile(HIGH)?)));
        found.unwrap_or((Time::NEVER, Time::NEVER))
    }

    /// Release the slot of a flow that has ended.
    pub fn end(&mut self, slot: usize) {
        if let Some(mut flow) = self.flows.get_mut(slot).and_then(Option::take) {
            flow.close(self.interval, self.end, &mut self.rows);
        }
    }

    /// Take the rows of intervals that have ended; of all at the end of the run.
    pub fn take_rows(&mut self, all: bool) -> Rows {
        if all {
            for flow in self.flows.iter_mut().flatten() {
                flow.close(self.interval, self.end, &mut self.rows);
            }
        }
        std::mem::take(&mut self.rows)
    }
}

impl Flow {
    fn new(number: u32) -> Flow {
        Flow {
            number,
            measured: Histogram::new(),
            present: 0,
            arrived: Arrived::NONE,
        }
    }

    /// Write the row of the present interval, if anything arrived in it.
    fn close(&mut self, interval: Time, end: Time, rows: &mut Rows) {
        let arrived = std::mem::replace(&mut self.arrived, Arrived::NONE);
        if arrived.packets == 0 {
            return;
        }
        let until = Time::from_picoseconds(self.present * interval.picoseconds()).min(end);
        let mean = (arrived.sum / u128::from(arrived.packets)) as u64;
        rows.time_s.push(until.seconds());
        rows.flow.push(self.number);
        rows.packets.push(arrived.packets);
        rows.delay_min_s.push(arrived.least.seconds());
        rows.delay_mean_s
            .push(Time::from_picoseconds(mean).seconds());
        rows.delay_max_s.push(arrived.most.seconds());
    }
}

impl Arrived {
    fn add(&mut self, delay: Time) {
        self.packets += 1;
        self.least = self.least.min(delay);
        self.sum += u128::from(delay.picoseconds());
        self.most = self.most.max(delay);
    }
}
