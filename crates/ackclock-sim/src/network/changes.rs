//! Changes of links during the run: rate, delay, loss, failure and recovery.

use ackclock_core::tables::EventKind;
use ackclock_core::Rate;
use ackclock_plan::{ChangePlan, Plan};

use super::{Network, Time, NONE};
use crate::link::Link;
use crate::queue::{FlowHeaders, Queue};
use crate::PlanError;

/// The changes still to come.
pub struct Changes {
    /// Pending changes, the next one last.
    pending: Vec<Change>,
}

/// A change of a link.
struct Change {
    plan: ChangePlan,
    /// Discipline with which a failing link restarts.
    fresh: Option<Queue>,
}

impl Changes {
    /// The changes of a plan, in order of time. `seeds`: by link.
    pub fn new(plan: &Plan, headers: &FlowHeaders, seeds: &[u64]) -> Result<Changes, PlanError> {
        let mut plans = plan.changes.clone();
        plans.sort_by_key(|change| change.at);
        let mut rates: Vec<Rate> = plan.links.iter().map(|link| link.rate).collect();
        let mut is_up = vec![true; plan.links.len()];
        let mut seeds = seeds.to_vec();
        let mut pending = Vec::with_capacity(plans.len());
        for change in plans {
            let link = change.link as usize;
            rates[link] = change.rate.unwrap_or(rates[link]);
            let was_up = is_up[link];
            is_up[link] = change.up.unwrap_or(was_up);
            let mut fresh = None;
            if was_up && !is_up[link] {
                seeds[link] = seeds[link].wrapping_add(1);
                let (plan, rate, seed) = (&plan.links[link], rates[link], seeds[link]);
                fresh = Some(Link::discipline(plan, rate, headers, seed)?);
            }
            pending.push(Change {
                plan: change,
                fresh,
            });
        }
        pending.reverse();
        Ok(Changes { pending })
    }

    /// True if changes are pending.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }
}

impl Network {
    /// Schedule the next change of a link.
    pub(super) fn schedule_change(&mut self) {
        let next = self.changes.pending.last();
        let at = next.map_or(Time::NEVER, |change| change.plan.at);
        self.link_events.set(2 * self.links.len(), at);
    }

    /// Apply the change that is due.
    #[cold]
    pub(super) fn on_change(&mut self) {
        let Some(Change {
            plan: change,
            fresh,
        }) = self.changes.pending.pop()
        else {
            return;
        };
        let link = change.link as usize;
        self.catch_up_link(link, self.now);
        if let Some(rate) = change.rate {
            self.links[link].set_rate(rate);
        }
        if let Some(delay) = change.delay {
            self.set_delay(link, delay);
        }
        if let Some(loss) = change.loss {
            self.links[link].set_loss(loss);
        }
        if let (Some(medium), Some(now)) = (self.impairments.get_mut(&link), change.medium) {
            medium.set(now);
        }
        if let Some(fresh) = fresh {
            self.fail(link, fresh);
        } else if change.up == Some(true) && !self.links[link].is_up() {
            self.links[link].restore();
            self.routing.set_up(link, true);
        }
        self.record_change(link);
        self.schedule_change();
    }

    fn record_change(&mut self, index: usize) {
        let link = &self.links[index];
        let value = if link.is_up() {
            link.rate().bits_per_second()
        } else {
            0.0
        };
        let time_s = self.plan_time_s();
        let events = &mut self.tables.events;
        events.push(time_s, NONE, index as u32, EventKind::LinkChange, value);
    }

    /// Fail a link: the packets that it holds are lost, those in propagation arrive.
    fn fail(&mut self, link: usize, fresh: Queue) {
        self.transmissions.set(link, Time::NEVER);
        self.link_events.set(link, Time::NEVER);
        let recalled = self.abort_transmission(link);
        let mut lost = self.links[link].fail(fresh, self.now);
        let slot = if self.links[link].propagation.exists {
            0
        } else {
            lost.len()
        };
        lost.splice(slot..slot, recalled);
        for packet in lost {
            self.lose(link as u32, packet, EventKind::Loss);
        }
        self.routing.set_up(link, false);
    }
}
