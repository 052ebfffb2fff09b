//! Conservation of packets and the order of queues, from the packet log.

use std::collections::{HashMap, VecDeque};

use ackclock_core::tables::{PacketAction, Packets, Totals, NONE};
use ackclock_core::Time;
use ackclock_plan::{LossPlan, Plan};
use ackclock_sim::packet::Kind;
use ackclock_sim::Simulation;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::plans::{any_plan, cases, simulate};

/// Kinds that travel from the sender to the receiver: SYN, data, FIN, last ACK, probe (their numbers in the log).
const FORWARD: [u8; 6] = [
    Kind::Syn as u8,
    Kind::Data as u8,
    Kind::DataFin as u8,
    Kind::Fin as u8,
    Kind::LastAck as u8,
    Kind::WindowProbe as u8,
];
const DATA: [u8; 2] = [Kind::Data as u8, Kind::DataFin as u8];

/// A packet as the log names it: flow, kind, number, size.
type Name = (u32, u8, u64, u32);

fn rows(log: &Packets) -> impl Iterator<Item = (f64, u32, Name, u8)> + '_ {
    (0..log.time_s.len()).map(|row| {
        let name = (
            log.flow[row],
            log.kind[row],
            log.sequence[row],
            log.wire_bytes[row],
        );
        (log.time_s[row], log.link[row], name, log.what[row])
    })
}

fn is_forward(name: &Name) -> bool {
    FORWARD.contains(&name.1)
}

/// The simulation steps through a plan in some number of strides; at each stop the accounts agree.
pub fn check_balances(simulation: &mut Simulation, until: Time) -> Result<(), TestCaseError> {
    simulation.advance(until);
    let (sent, gone) = simulation.packets_sent_and_accounted();
    prop_assert_eq!(sent, gone + simulation.packets_in_transit());
    for link in simulation.links() {
        let (packets, bytes) = link.backlog();
        let backlog = link.discipline_backlog();
        prop_assert_eq!((packets, bytes), (backlog.packets, backlog.bytes));
    }
    Ok(())
}

/// Packet log of one link.
#[derive(Default)]
pub struct Ledger {
    /// Packets in the queue or in transmission, in the order of their arrival.
    held: VecDeque<Name>,
    offered: u64,
    dropped: u64,
    lost: u64,
    departed: u64,
    /// Data packets offered, by flow.
    data: HashMap<u32, u64>,
    /// Packets that left, by flow.
    left: HashMap<u32, Vec<Name>>,
}

impl Ledger {
    fn write(&mut self, name: Name, what: u8) -> Result<(), TestCaseError> {
        if what == PacketAction::Enqueue as u8 || what == PacketAction::Loss as u8 {
            self.offered += 1;
            *self.data.entry(name.0).or_default() += u64::from(DATA.contains(&name.1));
        }
        if what == PacketAction::Enqueue as u8 {
            self.held.push_back(name);
        } else if what == PacketAction::Loss as u8 {
            self.lost += 1;
        } else if what == PacketAction::Drop as u8 {
            self.dropped += 1;
            prop_assert_eq!(self.held.pop_back(), Some(name), "dropped from the tail");
        } else {
            self.departed += 1;
            self.left.entry(name.0).or_default().push(name);
            prop_assert_eq!(self.held.pop_front(), Some(name), "first in, first out");
        }
        Ok(())
    }
}

pub fn ledgers(log: &Packets, links: usize) -> Result<Vec<Ledger>, TestCaseError> {
    let mut ledgers: Vec<Ledger> = (0..links).map(|_| Ledger::default()).collect();
    for (_, link, name, what) in rows(log).filter(|row| row.1 != NONE) {
        ledgers[link as usize].write(name, what)?;
    }
    Ok(ledgers)
}

/// Each link: offered = lost + dropped + departed + held, by the log, the counters and the queue itself.
pub fn check_links(
    plan: &Plan,
    simulation: &Simulation,
    ledgers: &[Ledger],
    totals: &Totals,
) -> Result<(), TestCaseError> {
    let links = &totals.links;
    for (index, ledger) in ledgers.iter().enumerate() {
        let held = simulation.links()[index].held_packets(simulation.now());
        prop_assert_eq!(ledger.held.len() as u64, held);
        prop_assert_eq!(
            ledger.offered,
            ledger.lost + ledger.dropped + ledger.departed + held
        );
        prop_assert_eq!(links.arrived_total_p[index], ledger.offered);
        prop_assert_eq!(links.lost_total_p[index], ledger.lost);
        prop_assert_eq!(links.dropped_total_p[index], ledger.dropped);
        prop_assert_eq!(links.departed_total_p[index], ledger.departed);
        match plan.links[index].loss {
            None => prop_assert_eq!(ledger.lost, 0),
            Some(LossPlan::Every { packets }) => {
                let expected: u64 = ledger.data.values().map(|data| data / packets).sum();
                prop_assert_eq!(ledger.lost, expected);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Each flow: what its sender sent was offered to the first link of its path, what left one link was
/// offered to the next or is on its way there, and what left the last one reached the receiver, in order.
fn check_flows(
    plan: &Plan,
    log: &Packets,
    ledgers: &[Ledger],
    totals: &Totals,
) -> Result<(), TestCaseError> {
    for (index, flow) in plan.flows.iter().enumerate() {
        let id = index as u32;
        let mine = || rows(log).filter(|row| row.2 .0 == id && is_forward(&row.2));
        let offered = |link: u32| {
            mine()
                .filter(|row| row.1 == link)
                .filter(|row| {
                    [PacketAction::Enqueue as u8, PacketAction::Loss as u8].contains(&row.3)
                })
                .count() as u64
        };
        let left = |link: u32| {
            ledgers[link as usize]
                .left
                .get(&id)
                .map_or(&[][..], |left| left)
        };
        let hops: Vec<u32> = flow.forward.hops.iter().map(|hop| hop.link).collect();
        prop_assert_eq!(totals.flows.sent_packets[index], offered(hops[0]));
        for pair in hops.windows(2) {
            prop_assert!(left(pair[0]).len() as u64 >= offered(pair[1]));
        }
        let arrived: Vec<(f64, Name)> = mine()
            .filter(|row| row.3 == PacketAction::Arrive as u8)
            .map(|row| (row.0, row.2))
            .collect();
        let names: Vec<Name> = arrived.iter().map(|&(_, name)| name).collect();
        prop_assert_eq!(&names[..], left(hops[hops.len() - 1]));
        prop_assert_eq!(totals.flows.received_packets[index], names.len() as u64);
        prop_assert!(arrived.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        let gone = rows(log)
            .filter(|row| row.2 .0 == id)
            .filter(|row| [PacketAction::Drop as u8, PacketAction::Loss as u8].contains(&row.3))
            .count() as u64;
        prop_assert_eq!(totals.flows.dropped_packets[index], gone);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn no_packet_appears_disappears_or_overtakes(
        plan in any_plan(),
        seed in any::<u64>(),
        stops in prop::collection::vec(0.0..1.0_f64, 0..20),
    ) {
        let mut simulation = simulate(&plan, seed);
        let mut stops = stops;
        stops.sort_by(f64::total_cmp);
        for stop in stops {
            check_balances(&mut simulation, plan.duration.scaled(stop))?;
        }
        check_balances(&mut simulation, plan.duration)?;
        let log = simulation.drain().packets;
        let totals = simulation.finish();
        let ledgers = ledgers(&log, plan.links.len())?;
        check_links(&plan, &simulation, &ledgers, &totals)?;
        check_flows(&plan, &log, &ledgers, &totals)?;
    }
}
