//! The truth besides the captures: it agrees with the accounts, the events and itself.

use std::collections::{BTreeMap, BTreeSet};

use ackclock_core::tables::{
    End, EventKind, Events, PacketFate, SendCause, SendLimit, Tables, Totals, Transmissions,
};
use ackclock_plan::{PcapPlan, Plan};
use ackclock_sim::packet::Kind;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::graphs::any_graph;
use super::plans::{any_plan, cases, simulate};

/// Numbers of the SYN, and of data and FIN, among the kinds of packets.
const SYN: u8 = Kind::Syn as u8;
const CARRY_DATA: [u8; 3] = [Kind::Data as u8, Kind::DataFin as u8, Kind::Fin as u8];

/// Rows of a run with a capture at the senders, the last ones included.
fn captured(mut plan: Plan, seed: u64) -> (Tables, Totals) {
    plan.record.pcap = PcapPlan::Senders(true);
    let mut simulation = simulate(&plan, seed);
    simulation.advance(plan.duration);
    let totals = simulation.finish();
    (simulation.drain(), totals)
}

/// Number of rows of each flow that satisfy a predicate.
fn count(rows: &Transmissions, flow: u32, is_so: impl Fn(usize) -> bool) -> u64 {
    let mine = (0..rows.flow.len()).filter(|&row| rows.flow[row] == flow);
    mine.filter(|&row| is_so(row)).count() as u64
}

fn check_accounts(rows: &Transmissions, totals: &Totals) -> Result<(), TestCaseError> {
    let flows = &totals.flows;
    for (index, &flow) in flows.flow.iter().enumerate() {
        let of_sender = |row: usize| rows.end[row] == End::Sender as u8;
        let fate = |row: usize, fate: PacketFate| rows.fate[row] == fate as u8;
        let is_gone = |row| fate(row, PacketFate::Dropped) || fate(row, PacketFate::Lost);
        let came = |row| fate(row, PacketFate::Delivered) || fate(row, PacketFate::Duplicate);
        let cause = |cause: SendCause| count(rows, flow, |row| rows.cause[row] == cause as u8);
        prop_assert_eq!(count(rows, flow, of_sender), flows.sent_packets[index]);
        prop_assert_eq!(count(rows, flow, is_gone), flows.dropped_packets[index]);
        prop_assert_eq!(cause(SendCause::TailProbe), flows.tail_probes[index]);
        prop_assert!(cause(SendCause::Timeout) <= flows.timeouts[index]);
        let syn_again = |row: usize| {
            rows.kind[row] == SYN && rows.cause[row] == SendCause::OpeningRetransmission as u8
        };
        let again = count(rows, flow, syn_again);
        prop_assert_eq!(again, flows.syn_retransmissions[index]);
        let arrived = count(rows, flow, |row| of_sender(row) && came(row));
        let ahead = count(rows, flow, |row| {
            of_sender(row) && fate(row, PacketFate::InTransit)
        });
        let received = flows.received_packets[index];
        prop_assert!((arrived..=arrived + ahead).contains(&received));
    }
    Ok(())
}

/// Each loss and each repair is an event too, at the same time.
fn check_events(rows: &Transmissions, events: &Events) -> Result<(), TestCaseError> {
    let told = |happening: EventKind| {
        let all = (0..events.kind.len()).filter(|&row| events.kind[row] == happening as u8);
        let named = all.map(|row| (events.flow[row], events.link[row]));
        let mut named: Vec<_> = named.collect();
        named.sort_unstable();
        named
    };
    for (fate, happening) in [
        (PacketFate::Dropped, EventKind::Drop),
        (PacketFate::Lost, EventKind::Loss),
    ] {
        let gone = (0..rows.fate.len()).filter(|&row| rows.fate[row] == fate as u8);
        let mut gone: Vec<_> = gone.map(|row| (rows.flow[row], rows.link[row])).collect();
        gone.sort_unstable();
        prop_assert_eq!(gone, told(happening));
    }
    let mut sent = BTreeSet::new();
    let mut repairs = Vec::new();
    for row in (0..rows.kind.len()).filter(|&row| CARRY_DATA.contains(&rows.kind[row])) {
        let is_repair = !sent.insert((rows.flow[row], rows.segment[row]));
        let is_new = [SendCause::NewData as u8, SendCause::LimitedTransmit as u8];
        prop_assert!(
            is_repair != is_new.contains(&rows.cause[row])
                || rows.cause[row] == SendCause::TailProbe as u8
        );
        if is_repair {
            repairs.push((
                rows.time_s[row].to_bits(),
                rows.flow[row],
                rows.segment[row],
            ));
        }
    }
    let retold = (0..events.kind.len())
        .filter(|&row| events.kind[row] == EventKind::Retransmission as u8)
        .map(|row| {
            (
                events.time_s[row].to_bits(),
                events.flow[row],
                events.value[row] as u64,
            )
        });
    prop_assert_eq!(repairs, retold.collect::<Vec<_>>());
    Ok(())
}

/// Rows are in order; of a segment one copy is delivered, before all duplicates; the state at sending makes sense.
fn check_rows(rows: &Transmissions) -> Result<(), TestCaseError> {
    prop_assert!(rows.time_s.is_sorted());
    let mut arrivals: BTreeMap<(u32, u64), Vec<(f64, u8)>> = BTreeMap::new();
    for row in 0..rows.time_s.len() {
        let came = rows.arrival_s[row].is_finite();
        let fate = rows.fate[row];
        prop_assert_eq!(
            came,
            [PacketFate::Delivered as u8, PacketFate::Duplicate as u8].contains(&fate)
        );
        prop_assert!(!came || rows.arrival_s[row] >= rows.time_s[row]);
        if CARRY_DATA.contains(&rows.kind[row]) {
            prop_assert!(rows.cwnd[row] >= 1.0 && rows.in_flight[row] >= 1);
            if came {
                let segment = (rows.flow[row], rows.segment[row]);
                arrivals
                    .entry(segment)
                    .or_default()
                    .push((rows.arrival_s[row], fate));
            }
        } else {
            prop_assert!(rows.cwnd[row].is_nan() && rows.limit[row] == SendLimit::None as u8);
        }
    }
    for copies in arrivals.values() {
        let first = copies
            .iter()
            .map(|copy| copy.0)
            .fold(f64::INFINITY, f64::min);
        let delivered: Vec<_> = copies
            .iter()
            .filter(|copy| copy.1 == PacketFate::Delivered as u8)
            .collect();
        prop_assert_eq!(delivered.len(), 1);
        prop_assert!(delivered[0].0 <= first);
    }
    Ok(())
}

fn check(plan: Plan, seed: u64) -> Result<(), TestCaseError> {
    let (tables, totals) = captured(plan, seed);
    check_accounts(&tables.transmissions, &totals)?;
    check_events(&tables.transmissions, &tables.events)?;
    check_rows(&tables.transmissions)
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn ground_truth_agrees_with_accounts_and_events(plan in any_plan(), seed in any::<u64>()) {
        check(plan, seed)?;
    }

    #[test]
    fn ground_truth_agrees_where_links_fail_and_change(plan in any_graph(true), seed in any::<u64>()) {
        check(plan, seed)?;
    }

    #[test]
    fn ground_truth_is_independent_of_stepping(
        plan in any_plan(), seed in any::<u64>(), share in 0.0..1.0_f64
    ) {
        let (whole, _) = captured(plan.clone(), seed);
        let mut plan = plan;
        plan.record.pcap = PcapPlan::Senders(true);
        let mut cut = simulate(&plan, seed);
        cut.advance(plan.duration.scaled(share));
        let mut rows = cut.drain().transmissions;
        cut.advance(plan.duration);
        rows.append(&mut cut.drain().transmissions);
        cut.finish();
        rows.append(&mut cut.drain().transmissions);
        let (found, expected) = (format!("{rows:?}"), format!("{:?}", whole.transmissions));
        prop_assert!(found == expected);
    }

    #[test]
    fn ground_truth_is_empty_without_captures(plan in any_plan(), seed in any::<u64>()) {
        let mut simulation = simulate(&plan, seed);
        simulation.advance(plan.duration);
        simulation.finish();
        prop_assert!(simulation.drain().transmissions.is_empty());
    }
}
