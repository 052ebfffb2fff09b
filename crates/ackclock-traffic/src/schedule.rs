//! The transfers of all workloads of a run: when each begins, and those that wait for others.

use ackclock_core::Time;

use crate::{Ends, Gate, Generated, Start, Transfer};

/// Transfers, numbered through all workloads, and the gates that count their completions.
#[derive(Debug, Default)]
pub struct Schedule {
    list: Vec<Transfer>,
    parts: Vec<Part>,
    gates: Vec<Counter>,
    /// Transfers that wait for a gate, gate by gate, and where those of each gate begin.
    waiting: Vec<u32>,
    first_waiting: Vec<u32>,
}

/// The first transfer and gate of one workload.
#[derive(Debug)]
struct Part {
    first: usize,
    first_gate: u32,
}

/// A gate and the completions that it still awaits.
#[derive(Debug)]
struct Counter {
    gate: Gate,
    /// It begins nothing at or after this.
    stop: Time,
}

impl Schedule {
    /// The transfers of these workloads, in their order.
    pub fn new(workloads: impl IntoIterator<Item = Generated>) -> Schedule {
        let mut schedule = Schedule::default();
        for made in workloads {
            schedule.add(made);
        }
        schedule.sort_waiting();
        schedule
    }

    fn add(&mut self, made: Generated) {
        self.parts.push(Part {
            first: self.list.len(),
            first_gate: self.gates.len() as u32,
        });
        let stop = made.stop;
        let gates = made.gates.into_iter().map(|gate| Counter { gate, stop });
        self.gates.extend(gates);
        self.list.extend(made.transfers);
        self.list.shrink_to_fit();
    }

    /// Sort by gate what waits for one; the order within a gate stays.
    fn sort_waiting(&mut self) {
        let gate = |index: &u32| self.gate_of(*index as usize);
        let mut waiting: Vec<u32> = (0..self.list.len() as u32)
            .filter(|index| gate(index).is_some())
            .collect();
        waiting.sort_by_key(gate);
        let gates = 0..=self.gates.len() as u32;
        self.first_waiting = gates
            .map(|of| waiting.partition_point(|index| gate(index) < Some(of)) as u32)
            .collect();
        self.waiting = waiting;
    }

    /// Return the number of transfers.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Return true if there is no transfer.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The numbers of a workload's transfers.
    pub fn of_workload(&self, workload: usize) -> std::ops::Range<usize> {
        let next = self.parts.get(workload + 1);
        self.parts[workload].first..next.map_or(self.list.len(), |part| part.first)
    }

    /// A transfer.
    pub fn transfer(&self, index: usize) -> Transfer {
        self.list[index]
    }

    /// When a transfer begins; [`Time::NEVER`] if it waits for others.
    pub fn start(&self, index: usize) -> Time {
        match self.list[index].start {
            Start::At(time) => time,
            Start::Gate(_) => Time::NEVER,
        }
    }

    /// Size in bytes; none if it is endless.
    pub fn size_bytes(&self, index: usize) -> Option<u64> {
        self.list[index].size_bytes
    }

    /// Return true if others wait for the transfer's completion.
    pub fn is_awaited(&self, index: usize) -> bool {
        self.list[index].completes.is_some()
    }

    /// Between whom a transfer is, by its workload's numbers.
    pub fn ends(&self, index: usize) -> Ends {
        self.list[index].ends
    }

    /// The number of the workload that a transfer is of.
    pub fn workload(&self, index: usize) -> usize {
        self.parts.partition_point(|part| part.first <= index) - 1
    }

    /// A transfer is complete at `now`: when those begin that have waited for it alone, and which they are.
    pub fn complete(&mut self, index: usize, now: Time) -> Option<(Time, &[u32])> {
        let gate = self.list[index].completes? + self.parts[self.workload(index)].first_gate;
        let counter = &mut self.gates[gate as usize];
        counter.gate.awaits -= 1;
        let opens = now + counter.gate.delay;
        if counter.gate.awaits > 0 || opens >= counter.stop {
            return None;
        }
        let place = |gate: u32| self.first_waiting[gate as usize] as usize;
        Some((opens, &self.waiting[place(gate)..place(gate + 1)]))
    }

    fn gate_of(&self, index: usize) -> Option<u32> {
        match self.list[index].start {
            Start::At(_) => None,
            Start::Gate(gate) => Some(gate + self.parts[self.workload(index)].first_gate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(start: Start, completes: Option<u32>) -> Transfer {
        Transfer {
            start,
            size_bytes: Some(1),
            ends: Ends::Path(0),
            completes,
        }
    }

    fn seconds(seconds: u64) -> Time {
        Time::from_milliseconds(1000 * seconds)
    }

    /// Two transfers that a third one waits for.
    fn pair_and_one() -> Generated {
        Generated {
            transfers: vec![
                transfer(Start::At(Time::ZERO), Some(0)),
                transfer(Start::At(seconds(1)), Some(0)),
                transfer(Start::Gate(0), None),
            ],
            gates: vec![Gate {
                awaits: 2,
                delay: seconds(1),
            }],
            stop: seconds(10),
        }
    }

    #[test]
    fn a_gate_opens_after_the_last_completion_that_it_awaits() {
        let mut schedule = Schedule::new([pair_and_one(), pair_and_one()]);
        assert_eq!((schedule.len(), schedule.is_empty()), (6, false));
        assert_eq!(schedule.start(1), seconds(1));
        assert!(schedule.start(5).is_never());
        assert_eq!(schedule.workload(2), 0);
        assert_eq!(schedule.workload(3), 1);
        assert_eq!(schedule.complete(4, seconds(3)), None);
        assert_eq!(
            schedule.complete(3, seconds(4)),
            Some((seconds(5), &[5][..]))
        );
        assert_eq!(schedule.complete(0, seconds(4)), None);
        assert_eq!(
            schedule.complete(1, seconds(6)),
            Some((seconds(7), &[2][..]))
        );
        assert_eq!(schedule.complete(2, seconds(7)), None);
    }

    #[test]
    fn a_gate_that_opens_at_the_stop_starts_no_transfer() {
        let mut schedule = Schedule::new([pair_and_one()]);
        assert_eq!(schedule.complete(0, seconds(1)), None);
        assert_eq!(schedule.complete(1, seconds(9)), None);
    }
}
