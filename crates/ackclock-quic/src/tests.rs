//! Conversations of two endpoints.

use ackclock_core::Time;
use ackclock_plan::{QuicCongestion, QuicPlan, QuicStack, StackCongestion};

use crate::{Change, ConnectionEnd, Datagram, EcnCodepoint, Endpoint, Role};

const ONE_WAY: Time = Time::from_milliseconds(10);

fn plan() -> QuicPlan {
    QuicPlan {
        stack: QuicStack::Noq,
        congestion: QuicCongestion::Stack(StackCongestion::Cubic),
        start_jitter: Time::ZERO,
        size_bytes: Some(200_000),
        streams: 1,
        initial_window_bytes: 12_000,
        discovery_limit_bytes: Some(1472),
        ack_eliciting_threshold: None,
        receive_window_bytes: 1_250_000,
        send_window_bytes: 10_000_000,
        ecn: true,
        certificate_chain_bytes: 2500,
        qlog: false,
    }
}

/// A datagram in the record of a conversation.
#[derive(Clone, Debug, PartialEq)]
struct Sent {
    at: Time,
    role: Role,
    datagram: Datagram,
}

/// A client and a server with 10 ms between them.
struct Conversation {
    ends: [Endpoint; 2],
    flight: Vec<(Time, usize, Datagram)>,
    sent: Vec<Sent>,
    /// True if the datagram of this number is lost.
    loses: fn(usize) -> bool,
    /// True if the datagram of this number is marked.
    marks: fn(usize) -> bool,
}

fn endpoint(plan: &QuicPlan, role: Role, seed: u64) -> Endpoint {
    Endpoint::new(plan, role, Time::ZERO, Time::NEVER, seed).expect("a controller")
}

const ROLES: [Role; 2] = [Role::Client, Role::Server];

impl Conversation {
    fn new(plan: &QuicPlan, seed: u64) -> Conversation {
        let end = |role| endpoint(plan, role, seed + role as u64);
        Conversation {
            ends: ROLES.map(end),
            flight: Vec::new(),
            sent: Vec::new(),
            loses: |_| false,
            marks: |_| false,
        }
    }

    fn run(mut self, until: Time) -> Conversation {
        loop {
            let timers = self.ends.iter().map(Endpoint::wake);
            let arrivals = self.flight.iter().map(|&(arrival, ..)| arrival);
            let now = timers.chain(arrivals).min().unwrap_or(Time::NEVER);
            if now > until {
                return self;
            }
            let due = self.flight.iter().position(|&(arrival, ..)| arrival == now);
            if let Some(due) = due {
                let (_, to, datagram) = self.flight.remove(due);
                self.ends[to].on_datagram(datagram.bytes, datagram.ecn, now);
            }
            for from in 0..2 {
                if self.ends[from].wake() <= now {
                    self.poll(from, now);
                }
            }
        }
    }

    fn poll(&mut self, from: usize, now: Time) {
        while let Some(mut datagram) = self.ends[from].poll(now) {
            let number = self.sent.len();
            self.sent.push(Sent {
                at: now,
                role: ROLES[from],
                datagram: datagram.clone(),
            });
            if (self.marks)(number) {
                datagram.ecn = datagram.ecn.map(|_| EcnCodepoint::Ce);
            }
            if !(self.loses)(number) {
                self.flight.push((now + ONE_WAY, 1 - from, datagram));
            }
        }
        assert!(self.ends[from].wake() > now, "a timer is not due twice");
    }

    /// Sizes of the datagrams of one end until a time.
    fn sizes(&self, role: Role, until: Time) -> Vec<usize> {
        let sent = self.sent.iter();
        sent.filter(|sent| sent.role == role && sent.at <= until)
            .map(|sent| sent.datagram.bytes.len())
            .collect()
    }
}

fn seconds(seconds: u64) -> Time {
    Time::from_milliseconds(1000 * seconds)
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_others() {
    let sent = |seed| Conversation::new(&plan(), seed).run(seconds(10)).sent;
    let first = sent(1);
    assert!(first.len() > 200);
    assert_eq!(first, sent(1));
    assert_ne!(first, sent(3));
}

#[test]
fn all_bytes_arrive_and_the_connection_closes() {
    let short_chain = QuicPlan {
        certificate_chain_bytes: 500,
        ..plan()
    };
    let mut conversation = Conversation::new(&short_chain, 1).run(seconds(10));
    assert_eq!(conversation.ends[1].read_bytes(), 200_000);
    let transport = conversation.ends[0].transport().expect("a connection");
    assert_eq!(transport.established, Some(ONE_WAY + ONE_WAY));
    assert!(transport.finished.is_some() && !transport.is_active());
    assert_eq!(
        (transport.lost_packets, transport.recoveries),
        (Some(0), Some(0))
    );
    let changes = conversation.ends[0].take_changes();
    let changes: Vec<Change> = changes.into_iter().map(|(_, change)| change).collect();
    assert_eq!(changes, [Change::Established, Change::Finished]);
}

/// RFC 9000 section 14.1: datagrams with ACK-eliciting Initial packets have at least 1200 bytes. What does not fit into
/// the server's first one follows after a round trip, for the stack paces it by an initial RTT of 333 ms; a byte of
/// certificates more is a byte more on the wire.
#[test]
fn the_handshake_grows_with_the_certificate_chain() {
    let flights = |certificate_chain_bytes| {
        let plan = QuicPlan {
            certificate_chain_bytes,
            ..plan()
        };
        let conversation = Conversation::new(&plan, 1).run(Time::from_milliseconds(30));
        assert_eq!(conversation.sizes(Role::Client, Time::ZERO), [1200]);
        assert_eq!(conversation.sizes(Role::Server, ONE_WAY), [1200]);
        conversation.sizes(Role::Server, Time::from_milliseconds(30))
    };
    let bytes = |chain| flights(chain).iter().sum::<usize>();
    assert_eq!((flights(1400).len(), flights(2500).len()), (2, 3));
    assert_eq!(bytes(1400) - bytes(1000), 400);
    assert_eq!(bytes(2500) - bytes(2000), 500);
}

#[test]
fn every_byte_arrives_under_loss_both_ways() {
    let mut conversation = Conversation::new(&plan(), 1);
    conversation.loses = |number| number % 7 == 3;
    let conversation = conversation.run(seconds(60));
    assert_eq!(conversation.ends[1].read_bytes(), 200_000);
    let transport = conversation.ends[0].transport().expect("a connection");
    assert!(transport.finished.is_some());
    assert!(transport.lost_packets > Some(10) && transport.recoveries > Some(3));
}

/// RFC 9002 section 7.1: a marked packet is a congestion event like a lost one; nothing is sent again.
#[test]
fn marks_reduce_the_window_without_losses() {
    let endless = QuicPlan {
        size_bytes: None,
        ..plan()
    };
    let mut conversation = Conversation::new(&endless, 1);
    conversation.marks = |number| number == 150;
    let mut conversation = conversation.run(seconds(1));
    let changes = conversation.ends[0].take_changes();
    let reactions = changes
        .iter()
        .filter(|(_, change)| *change == Change::MarkReaction);
    assert_eq!(reactions.count(), 1, "{changes:?}");
    let transport = conversation.ends[0].transport().expect("a connection");
    assert_eq!(transport.lost_packets, Some(0));
    assert!(transport.ssthresh_bytes.is_some());
}

/// An endpoint without a connection discards garbage, or answers it once.
#[test]
fn datagrams_of_arbitrary_bytes_do_no_harm() {
    let mut server = endpoint(&plan(), Role::Server, 1);
    let mut bytes: Vec<u8> = (0..1200_u32).map(|n| (n * 7 + n / 5) as u8).collect();
    for first in 0..=255 {
        bytes[0] = first;
        let now = Time::from_milliseconds(first.into());
        server.on_datagram(bytes.clone(), None, now);
        let answers = std::iter::from_fn(|| server.poll(now)).count();
        assert!(answers <= 1, "{answers}");
        assert!(server.wake() > now);
    }
}

#[test]
fn bytes_in_flight_are_those_that_are_not_acknowledged() {
    let endless = QuicPlan {
        size_bytes: None,
        discovery_limit_bytes: None,
        ..plan()
    };
    let conversation = Conversation::new(&endless, 1).run(Time::from_milliseconds(300));
    let transport = conversation.ends[0].transport().expect("a connection");
    assert_eq!(transport.datagram_bytes, 1200);
    // Nothing is lost: the receive window of 1.25 MB is in flight, with headers, unless the window is smaller.
    let limit = transport.cwnd_bytes.unwrap().min(1_350_000);
    let share = transport.in_flight_bytes.unwrap() as f64 / limit as f64;
    assert!((0.5..=1.01).contains(&share), "{transport:?}");
    assert_eq!(transport.srtt, Some(ONE_WAY + ONE_WAY));
}
