//! Every queue discipline under any arrivals and departures.

use std::collections::HashMap;

use ackclock_core::Time;
use ackclock_plan::QueuePlan;
use ackclock_sim::packet::{Ecn, Flags, Kind, Packet, NO_PACKET};
use ackclock_sim::queue::{self, Backlog, Drops, FlowHeader, FlowHeaders, Queue, QueueContext};
use proptest::prelude::*;
use proptest::sample::select;

use crate::kit::cards::disciplines;

const FLOWS: u32 = 8;

/// An arrival or a departure, so many microseconds after the step before.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The ECN bits are those of a packet that is not corrupted.
    Arrive(u32, u32, u32, Kind, Option<Ecn>),
    Leave(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause_us = || prop_oneof![0..20_u32, 0..5_000_u32, 0..500_000_u32];
    let kind = prop_oneof![
        8 => Just(Kind::Data), 1 => Just(Kind::Syn), 1 => Just(Kind::Fin), 1 => Just(Kind::DataFin), 2 => Just(Kind::Ack)
    ];
    let ecn = select(vec![
        Some(Ecn::NotEct),
        Some(Ecn::Ect0),
        Some(Ecn::Ect1),
        Some(Ecn::Ce),
        None,
    ]);
    let arrive = (pause_us(), 0..FLOWS, 40..1600_u32, kind, ecn)
        .prop_map(|(us, flow, bytes, kind, ecn)| Step::Arrive(us, flow, bytes, kind, ecn));
    let step = prop_oneof![3 => arrive, 2 => pause_us().prop_map(Step::Leave)];
    prop::collection::vec(step, 1..600)
}

fn make(plan: &QueuePlan, seed: u64) -> Queue {
    let header = |flow: u32| FlowHeader {
        priority: [0, 2, 4, 6, 8, 10, 12, 15][flow as usize],
        dscp: [0, 8, 46, 34, 0, 0, 8, 46][flow as usize],
        bare_ack_bytes: 52,
        hosts: [flow % 3, 3 + flow % 2],
        is_external: false,
    };
    let context = QueueContext {
        rate_bps: 1e7,
        seed,
        frame_bytes: 14,
        headers: &FlowHeaders::new((0..FLOWS).map(|flow| (flow, header(flow)))),
    };
    queue::make(&plan.discipline, &plan.parameters, &context)
        .unwrap_or_else(|error| panic!("{}: {error}", plan.discipline))
}

/// Fate of a packet, by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Left(u64, Ecn),
    Dropped(u64),
    Marked(u64),
}

/// A queue and the account of what is in it.
struct Account {
    queue: Queue,
    inside: HashMap<u64, Packet>,
    bytes: u64,
    now: Time,
    number: u64,
    fates: Vec<Fate>,
}

impl Account {
    fn new(plan: &QueuePlan, seed: u64) -> Account {
        Account {
            queue: make(plan, seed),
            inside: HashMap::new(),
            bytes: 0,
            now: Time::ZERO,
            number: 0,
            fates: Vec::new(),
        }
    }

    fn apply(&mut self, step: Step) {
        let mut drops = Drops::default();
        match step {
            Step::Arrive(us, flow, bytes, kind, ecn) => {
                self.now += Time::from_microseconds(u64::from(us));
                let packet = self.packet(flow, bytes, kind, ecn);
                self.inside.insert(packet.sequence, packet);
                self.bytes += u64::from(bytes);
                self.queue.enqueue(packet, self.now, &mut drops);
            }
            Step::Leave(us) => {
                self.now += Time::from_microseconds(u64::from(us));
                if let Some(packet) = self.queue.dequeue(self.now, &mut drops) {
                    self.fates.push(Fate::Left(packet.sequence, packet.ecn()));
                    self.remove_packet(&packet);
                }
            }
        }
        for packet in drops.drain() {
            self.fates.push(Fate::Dropped(packet.sequence));
            self.remove_packet(&packet);
        }
        let marked = drops
            .drain_marked()
            .map(|packet| Fate::Marked(packet.sequence));
        self.fates.extend(marked);
    }

    fn packet(&mut self, flow: u32, wire_bytes: u32, kind: Kind, ecn: Option<Ecn>) -> Packet {
        self.number += 1;
        let mut packet = Packet {
            sequence: self.number,
            timestamp: self.now,
            enqueued: self.now,
            flow,
            wire_bytes,
            kind,
            flags: ecn.map_or(Flags::NONE, Flags::of),
            ..NO_PACKET
        };
        if ecn.is_none() {
            packet.corrupt();
        }
        packet
    }

    /// Account for a packet that leaves: exactly one time, and unchanged except for a mark, which a corrupted packet
    /// never gets.
    fn remove_packet(&mut self, packet: &Packet) {
        let entered = self.inside.remove(&packet.sequence).expect("it was inside");
        assert_eq!(
            Packet {
                flags: entered.flags,
                enqueued: entered.enqueued,
                ..*packet
            },
            entered
        );
        let is_marked = packet.flags == entered.flags.with_ecn(Ecn::Ce);
        assert!(packet.flags == entered.flags || (is_marked && entered.ecn() != Ecn::NotEct));
        self.bytes -= u64::from(packet.wire_bytes);
    }

    fn agrees(&self) -> bool {
        let Backlog { packets, bytes } = self.queue.backlog();
        packets as usize == self.inside.len() && bytes == self.bytes
    }
}

fn run(plan: &QueuePlan, seed: u64, steps: &[Step]) -> Account {
    let mut account = Account::new(plan, seed);
    for &step in steps {
        account.apply(step);
        assert!(
            account.agrees(),
            "{}: backlog after {step:?}",
            plan.discipline
        );
    }
    account
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every packet leaves, is dropped, or is in the backlog; only ECN-capable packets are marked.
    #[test]
    fn packets_are_conserved_and_the_backlog_is_reported(
        plan in select(disciplines(20)),
        seed in any::<u64>(),
        steps in steps(),
    ) {
        let mut account = run(&plan, seed, &steps);
        let before = account.inside.len();
        for _ in 0..4 * before {
            account.apply(Step::Leave(1_000_000));
        }
        prop_assert!(account.inside.is_empty(), "{} keeps packets", plan.discipline);
    }

    #[test]
    fn the_same_seed_gives_the_same_fates(
        plan in select(disciplines(10)),
        seed in any::<u64>(),
        steps in steps(),
    ) {
        prop_assert_eq!(run(&plan, seed, &steps).fates, run(&plan, seed, &steps).fates);
    }

    /// A discipline without a reason to hold packets back gives one whenever there is one; one that does names
    /// the time, and keeps it.
    #[test]
    fn a_waiting_packet_leaves_at_its_ready_time(
        plan in select(disciplines(10)),
        steps in steps(),
    ) {
        let mut account = run(&plan, 1, &steps);
        while !account.inside.is_empty() {
            let before = account.inside.len();
            account.apply(Step::Leave(0));
            if account.inside.len() == before {
                let ready = account.queue.ready(account.now);
                prop_assert!(ready > account.now && !ready.is_never(), "{}: ready at {ready:?}", plan.discipline);
                account.now = ready;
                account.apply(Step::Leave(0));
                prop_assert!(account.inside.len() < before, "{} breaks its word", plan.discipline);
            }
        }
    }

    /// Packets of one flow and kind keep their order: none overtakes another of its like.
    #[test]
    fn a_flow_keeps_its_order(plan in select(disciplines(15)), seed in any::<u64>(), steps in steps()) {
        let steps: Vec<Step> = steps.into_iter().map(|step| match step {
            Step::Arrive(us, flow, bytes, ..) => Step::Arrive(us, flow, bytes, Kind::Data, Some(Ecn::Ect0)),
            leave @ Step::Leave(_) => leave,
        }).collect();
        let mut account = Account::new(&plan, seed);
        let mut flows = HashMap::new();
        let mut last = HashMap::new();
        for step in steps {
            account.apply(step);
            if let Step::Arrive(_, flow, ..) = step {
                flows.insert(account.number, flow);
            }
        }
        for fate in &account.fates {
            if let Fate::Left(number, _) = fate {
                let before = last.insert(flows[number], *number);
                prop_assert!(before < Some(*number), "{}: {before:?} before {number}", plan.discipline);
            }
        }
    }
}
