//! `prio`: bands with strict priority, chosen by the flow's priority.
//!
//! Behaviour: `tc-prio(8)`. The priority of a packet, 0 to 15, picks a band by the `priomap`; each band is a
//! `pfifo`, and a packet leaves a band only while those before it are empty. Bands count from 0 here, as in
//! the `priomap`; `tc` numbers their classes from 1.
//!
//! Deviations: a flow has one priority, both ways; there are no filters. All bands have the same limit, as
//! in the kernel, where it is the device's `txqueuelen`. The packet in transmission has left its band.

use serde::de::Error as _;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::Packet;
use crate::queue::bands::Bands;
use crate::queue::{require, Queue, QueueContext};

/// Priorities of packets: 0 to 15, as the kernel's `TC_PRIO_MAX` has it.
const PRIORITIES: usize = 16;

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Number of bands.
    bands: usize,
    /// The band of each priority, as `tc` writes it: 16 numbers with spaces between them.
    priomap: String,
    /// Packets that fit in each band.
    limit_packets: u32,
}

impl Parameters {
    /// The band of each priority.
    fn map(&self) -> Result<Vec<usize>, serde_json::Error> {
        let numbers: Result<Vec<usize>, _> =
            self.priomap.split_whitespace().map(str::parse).collect();
        let map = numbers.map_err(serde_json::Error::custom)?;
        require(
            map.len() == PRIORITIES,
            "priomap must have 16 numbers, one for each priority",
        )?;
        require(
            map.iter().all(|band| *band < self.bands),
            "priomap must name bands from 0 to bands - 1",
        )?;
        Ok(map)
    }

    fn check(&self) -> Result<(), serde_json::Error> {
        require(
            (2..=PRIORITIES).contains(&self.bands),
            "bands must be from 2 to 16",
        )?;
        require(self.limit_packets > 0, "limit_packets must be at least 1")?;
        Ok(())
    }
}

/// Make the discipline; an error for parameters that differ from the specification, or a `priomap` that does not fit the bands.
pub fn make(parameters: &Value, context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let parameters = Parameters::deserialize(parameters)?;
    parameters.check()?;
    let map = parameters.map()?;
    let headers = context.headers.clone();
    let band_of = move |packet: &Packet| {
        let priority = headers.of_packet(packet).priority;
        map[usize::from(priority) % PRIORITIES]
    };
    let bands = Bands::new(parameters.bands, parameters.limit_packets, band_of);
    Ok(Queue::other(bands))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{packet, CONTEXT};
    use crate::queue::{Backlog, Drops, FlowHeader, FlowHeaders};
    use ackclock_core::Time;
    use serde_json::json;

    const PRIOMAP: &str = "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1";

    /// 16 flows, whose priority is their number.
    fn prio(bands: u32, priomap: &str, limit: u32) -> Result<Queue, serde_json::Error> {
        let with_priority = |flow| FlowHeader {
            priority: flow as u8,
            ..FlowHeader::default()
        };
        let headers = FlowHeaders::new((0..16).map(|flow| (flow, with_priority(flow))));
        let context = QueueContext {
            headers: &headers,
            ..CONTEXT
        };
        let parameters = json!({ "bands": bands, "priomap": priomap, "limit_packets": limit });
        make(&parameters, &context)
    }

    fn from_flow(flow: u32) -> Packet {
        Packet {
            flow,
            ..packet(u64::from(flow), 1514)
        }
    }

    /// Flows in the order in which their packets leave.
    fn order(queue: &mut Queue) -> Vec<u32> {
        let mut drops = Drops::default();
        std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut drops))
            .map(|packet| packet.flow)
            .collect()
    }

    #[test]
    fn the_bands_of_the_sixteen_priorities_are_those_of_tc() {
        let mut queue = prio(3, PRIOMAP, 100).expect("valid parameters");
        let mut drops = Drops::default();
        for flow in 0..16 {
            queue.enqueue(from_flow(flow), Time::ZERO, &mut drops);
        }
        // Interactive and control traffic (6, 7); then best effort; bulk (2), filler (1), 3 and 5 last.
        let expected = [6, 7, 0, 4, 8, 9, 10, 11, 12, 13, 14, 15, 1, 2, 3, 5];
        assert_eq!(order(&mut queue), expected);
        assert!(drops.is_empty());
    }

    #[test]
    fn an_urgent_packet_goes_before_all_that_waits() {
        let mut queue = prio(3, PRIOMAP, 100).expect("valid parameters");
        let mut drops = Drops::default();
        for flow in [2, 2, 0, 2, 0] {
            queue.enqueue(from_flow(flow), Time::ZERO, &mut drops);
        }
        assert_eq!(
            queue.dequeue(Time::ZERO, &mut drops).map(|p| p.flow),
            Some(0)
        );
        queue.enqueue(from_flow(6), Time::ZERO, &mut drops);
        assert_eq!(order(&mut queue), [6, 0, 2, 2, 2]);
    }

    #[test]
    fn each_band_has_its_own_limit() {
        let mut queue = prio(3, PRIOMAP, 2).expect("valid parameters");
        let mut drops = Drops::default();
        for flow in [2, 2, 2, 0, 6, 6, 6] {
            queue.enqueue(from_flow(flow), Time::ZERO, &mut drops);
        }
        let dropped: Vec<u32> = drops.drain().map(|packet| packet.flow).collect();
        assert_eq!(dropped, [2, 6]);
        let all = Backlog {
            packets: 5,
            bytes: 5 * 1514,
        };
        assert_eq!(queue.backlog(), all);
    }

    #[test]
    fn another_map_gives_other_bands() {
        let mut queue = prio(2, "0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0", 100).expect("valid parameters");
        let mut drops = Drops::default();
        for flow in [1, 2, 1, 15] {
            queue.enqueue(from_flow(flow), Time::ZERO, &mut drops);
        }
        assert_eq!(order(&mut queue), [2, 15, 1, 1]);
    }

    #[test]
    fn wrong_parameters_are_rejected() {
        for (bands, priomap, limit) in [
            (1, "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", 10),
            (17, PRIOMAP, 10),
            (2, PRIOMAP, 10),
            (3, "1 2 2", 10),
            (3, "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 x", 10),
            (3, "", 10),
            (3, PRIOMAP, 0),
        ] {
            assert!(prio(bands, priomap, limit).is_err(), "{bands} {priomap}");
        }
    }
}
