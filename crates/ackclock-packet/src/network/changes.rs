//! Links change during the run: their rate, their delay, whether they work.

use super::{Network, Time, NONE};
use crate::packet::Packet;
use crate::plan::{ChangePlan, Plan};
use crate::record::Happening;

/// The changes still to come.
#[derive(Default)]
pub struct Changes {
    /// The next one last.
    to_come: Vec<ChangePlan>,
    /// By flow: what a discipline that starts anew has to know.
    priorities: Vec<u8>,
}

impl Changes {
    /// The changes of a plan, in order of time.
    pub fn new(plan: &Plan, priorities: Vec<u8>) -> Changes {
        let mut to_come = plan.changes.clone();
        to_come.sort_by_key(|change| change.at);
        to_come.reverse();
        Changes {
            to_come,
            priorities,
        }
    }

    /// Whether changes are still to come.
    pub fn are_planned(&self) -> bool {
        !self.to_come.is_empty()
    }
}

impl Network {
    /// Schedules the next change of a link.
    pub(super) fn schedule_change(&mut self) {
        let next = self.changes.to_come.last();
        let at = next.map_or(Time::NEVER, |change| change.at);
        self.link_events.set(2 * self.links.len(), at);
    }

    /// Makes the change whose time has come.
    #[cold]
    pub(super) fn on_change(&mut self) {
        let Some(change) = self.changes.to_come.pop() else {
            return;
        };
        let link = change.link as usize;
        self.catch_up_with(link, self.now);
        if let Some(rate) = change.rate {
            self.links[link].set_rate(rate);
        }
        if let Some(delay) = change.delay {
            self.set_delay(link, delay);
        }
        match change.up {
            Some(false) if self.links[link].is_up() => self.fail(link),
            Some(true) if !self.links[link].is_up() => {
                self.links[link].restore();
                self.routing.set_up(link, true);
            }
            _ => {}
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
        let events = &mut self.tables.events;
        events.push(self.now, NONE, index as u32, Happening::LinkChange, value);
    }

    /// A link fails: what it holds is lost, what flies behind it arrives.
    fn fail(&mut self, link: usize) {
        self.transmissions.set(link, Time::NEVER);
        self.link_events.set(link, Time::NEVER);
        let recalled = self.recall(link);
        let failed = self.links[link].fail(&self.changes.priorities, self.now);
        // The same discipline was made from the same parameters before.
        let lost: Vec<Packet> = failed.unwrap_or_default();
        for packet in recalled.into_iter().chain(lost) {
            self.lose(link as u32, packet, Happening::Loss);
        }
        self.routing.set_up(link, false);
    }
}
