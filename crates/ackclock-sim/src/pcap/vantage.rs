//! Vantage points of captures: at hosts, and at a link.

use std::collections::BTreeMap;

use ackclock_core::Time;
use ackclock_plan::{LinkPlan, PathPlan, Vantage};

/// Location of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// At the host that sends its flow's data.
    Sender,
    /// At the host that receives its flow's data.
    Receiver,
    /// Behind the transmitter of this link.
    Link(u32),
}

/// Vantage point of a capture.
#[derive(Debug)]
pub enum Point {
    /// All hosts that send data.
    Senders,
    /// All hosts that receive them.
    Receivers,
    /// The wire behind a link.
    Wire(Wire),
}

/// The wire behind a link, which carries packets of the other direction too: those of the opposite link between
/// its nodes; without nodes, those on the reverse path of flows that cross it.
#[derive(Debug, Default)]
pub struct Wire {
    links: Vec<u32>,
    /// Delay from the sender to the link, by path whose data cross it.
    from_sender: BTreeMap<u32, Time>,
    /// Delay from the receiver to the link, by path whose ACKs cross it.
    from_receiver: BTreeMap<u32, Time>,
}

impl Point {
    /// Vantage point of a plan with these links and paths.
    pub fn new(vantage: &Vantage, links: &[LinkPlan], paths: &[(&PathPlan, &PathPlan)]) -> Point {
        match vantage {
            Vantage::Senders => Point::Senders,
            Vantage::Receivers => Point::Receivers,
            Vantage::Link(name) => Point::Wire(Wire::new(name, links, paths)),
        }
    }

    /// True if a packet at this location is captured.
    pub fn captures(&self, location: Location) -> bool {
        match (self, location) {
            (Point::Senders, Location::Sender) | (Point::Receivers, Location::Receiver) => true,
            (Point::Wire(wire), Location::Link(link)) => wire.links.contains(&link),
            _ => false,
        }
    }

    /// Time before its arrival at which a packet that has left its last queue on this path passes; `None` if it does
    /// not.
    pub fn before_arrival(&self, path: u32, forward: bool) -> Option<Time> {
        match self {
            Point::Wire(wire) if forward => wire.from_receiver.get(&path).copied(),
            Point::Wire(wire) => wire.from_sender.get(&path).copied(),
            _ => None,
        }
    }
}

impl Wire {
    fn new(name: &str, all: &[LinkPlan], paths: &[(&PathPlan, &PathPlan)]) -> Wire {
        let Some(link) = all.iter().position(|link| link.name == name) else {
            return Wire::default();
        };
        let is_other_way = |other: &LinkPlan| match (all[link].ends, other.ends) {
            (Some(one), Some(other)) => {
                (one.source, one.destination) == (other.destination, other.source)
            }
            _ => false,
        };
        let others = (0..all.len()).filter(|&other| is_other_way(&all[other]));
        let links = std::iter::once(link).chain(others.take(1));
        let delays = |direction: fn(&(&PathPlan, &PathPlan)) -> PathPlan| {
            let delays = (0..).zip(paths).filter_map(|(number, path)| {
                delay_to(link, &direction(path), all).map(|delay| (number, delay))
            });
            delays.collect()
        };
        Wire {
            links: links.map(|link| link as u32).collect(),
            from_sender: delays(|&(forward, _)| forward.clone()),
            from_receiver: delays(|&(_, reverse)| reverse.clone()),
        }
    }
}

/// Propagation delay from the start of a path to a link on it.
fn delay_to(link: usize, path: &PathPlan, all: &[LinkPlan]) -> Option<Time> {
    let mut delay = Time::ZERO;
    for hop in &path.hops {
        delay += hop.delay;
        if hop.link as usize == link {
            return Some(delay);
        }
        delay += all[hop.link as usize].delay;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_plan::{EndsPlan, HopPlan};
    use serde_json::json;

    fn link(name: &str, ends: Option<(u32, u32)>) -> LinkPlan {
        let queue = json!({ "discipline": "pfifo", "parameters": {} });
        let ends = ends.map(|(source, destination)| EndsPlan {
            source,
            destination,
        });
        let plan = json!({
            "name": name, "ends": null, "rate_bps": 1e6, "delay_s": 0.001, "weight": 1.0, "burst_bytes": null,
            "frame_overhead_bytes": 0, "queue": queue, "loss": null, "medium": null, "trace": null, "bottleneck": false,
        });
        LinkPlan {
            ends,
            ..serde_json::from_value(plan).expect("a link")
        }
    }

    fn path(links: &[u32], delay_ms: u64) -> PathPlan {
        let hop = |&link| HopPlan {
            delay: Time::from_milliseconds(delay_ms),
            link,
        };
        PathPlan {
            hops: links.iter().map(hop).collect(),
            delay: Time::from_milliseconds(20),
        }
    }

    fn wire(name: &str, links: &[LinkPlan], paths: &[(&PathPlan, &PathPlan)]) -> Point {
        Point::new(&Vantage::Link(name.to_owned()), links, paths)
    }

    #[test]
    fn a_wire_between_nodes_has_both_directions() {
        let links = [
            link("a>b", Some((0, 1))),
            link("b>c", Some((1, 2))),
            link("b>a", Some((1, 0))),
        ];
        let wire = wire("b>a", &links, &[]);
        let seen: Vec<u32> = (0..3)
            .filter(|&link| wire.captures(Location::Link(link)))
            .collect();
        assert_eq!(seen, [0, 2]);
        assert!(!wire.captures(Location::Sender) && !wire.captures(Location::Receiver));
    }

    /// The second link of the forward path is 2 × 5 ms and the first link's 1 ms away from the sender.
    #[test]
    fn reverse_packets_pass_the_wire_of_the_forward_path() {
        let links = [link("first", None), link("second", None)];
        let (there, back) = (path(&[0, 1], 5), path(&[], 0));
        let elsewhere = path(&[0], 5);
        let paths = [(&elsewhere, &back), (&there, &back), (&back, &there)];
        let wire = wire("second", &links, &paths);
        let delay = Some(Time::from_milliseconds(11));
        let found = |forward| [0, 1, 2].map(|path| wire.before_arrival(path, forward));
        assert_eq!(found(false), [None, delay, None], "ACKs");
        assert_eq!(
            found(true),
            [None, None, delay],
            "data, of flows whose ACKs pass"
        );
    }
}
