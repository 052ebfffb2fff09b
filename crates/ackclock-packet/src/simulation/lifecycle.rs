//! How flows begin and end.
//!
//! A flow's sender, receiver and route are made when its start timer fires. They are dropped when both ends are
//! closed and every packet that they sent has arrived or is lost, so nothing can come late for a flow that is over.
//! (A flow whose very last packet is lost keeps them to the end of the run.)

use rand_core::RngCore;

use super::connection::{Connection, Snapshot, Stage};
use super::rows::Row;
use super::{stream, uniform, Simulation};
use crate::network::Course;
use crate::receiver::Receiver;
use crate::sender::Sender;
use ackclock_units::Time;

impl Simulation {
    pub(super) fn schedule_starts(&mut self) {
        for (index, flow) in self.plan.flows.iter().enumerate() {
            let start = flow.start + flow.start_jitter.scaled(uniform(self.seed, index as u64));
            self.timers.set(index, start);
        }
        self.timers.set(2 * self.flows.len(), Time::ZERO);
    }

    /// A flow begins now.
    pub(super) fn begin(&mut self, index: usize) {
        let number = index as u32;
        let plan = &self.plan.flows[index];
        // `Simulation::new` has seen to it that the plan names a congestion control.
        let Ok(sender) = Sender::new(number, plan) else {
            return;
        };
        let course = plan.ends.map_or(Course::Way(number), Course::Between);
        let choices = stream(self.seed, index as u64).next_u64();
        let mut flow = Box::new(Connection {
            sender: sender.with_seed(choices),
            entrance: self.network.open_connection(number, course, plan),
            receiver: Receiver::new(plan),
            lead: plan.forward.delay,
            at_warmup: Snapshot::default(),
        });
        let mut entrance = flow.entrance(&mut self.network);
        flow.sender.start(self.now, &mut entrance);
        self.timers.set(index, flow.sender.wake());
        self.flows[index] = Stage::Connection(flow);
        self.active.insert(number);
    }

    /// Ends a flow if both its ends are closed and none of its packets is under way.
    #[cold]
    pub(super) fn end_if_over(&mut self, index: usize) {
        let Stage::Connection(flow) = &self.flows[index] else {
            return;
        };
        let (sent, arrived) = flow.packets();
        let gone = self.network.gone(index);
        if !flow.is_closed() || sent != arrived + gone {
            return;
        }
        let mut row = Row::of(flow, gone);
        if !self.warmed_up {
            row.forget();
        }
        self.sent_before += sent;
        self.flows[index] = Stage::Over(Box::new(row));
        self.active.remove(&(index as u32));
        self.network.close_route(index as u32);
        self.timers.set(index, Time::NEVER);
        self.timers.set(self.flows.len() + index, Time::NEVER);
    }
}
