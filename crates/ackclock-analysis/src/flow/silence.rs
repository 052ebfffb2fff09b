//! Silences of a connection, and why (Mihály et al.; TAPO: *Demystifying and Mitigating TCP Stalls at the Server Side*,
//! CoNEXT 2015, whose tree the transport's classes follow).
//!
//! What a silence was is told by the packets that end it, and the first is not always enough: an acknowledgement that was
//! sent before it and lay somewhere meanwhile tells that a host stood still, and the clock of the data's sender, in its
//! next packet, whether that host's machine did. So a silence stays open until something is decided by what comes.

use super::half::Half;
use super::sending::Sending;
use super::{Connection, Stall};
use crate::quiet::Quiet;
use crate::tables::{Cause, Vantage};
use ackclock_pcap::packet::{Flags, Segment};

/// No shorter gap is a silence.
pub const LEAST_NS: i64 = 200_000_000;
/// Nor one of fewer smoothed RTTs.
const LEAST_RTTS: i64 = 4;
/// A handshake is silent if it takes longer without a SYN that is sent again: the first timeout (RFC 6298 section 2).
const SYN_TIMEOUT_NS: i64 = 1_000_000_000;
/// The whole capture was as silent as the connection if it was for this share of the time, until so long before its end.
const ALL_SILENT: f64 = 0.5;
const AT_ONCE_NS: i64 = 50_000_000;
/// A clock that is behind by more than this share of a silence stood still in it.
const STOOD_STILL: f64 = 0.8;
/// What was sent in the first half of a silence, as its sender's clock tells, and came behind it was held up.
const HELD: f64 = 0.5;
/// With fewer segments outstanding there are not enough duplicate acknowledgements.
const SMALL_WINDOW: u64 = 4;
/// A clock's rate is known after so long.
const CLOCK_NS: i64 = 500_000_000;
/// Until then no clock is taken to be slower than this (RFC 7323 section 5.4).
const SLOWEST_TICK_NS: f64 = 100e6;
/// More packets than that are not lost at once without a hole in the data.
const MOST_UNSEEN: u32 = 256;

/// How far the packets behind a silence have told why it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Nothing so far.
    Nothing,
    /// What came first was sent before the silence, or early in it.
    Held,
    /// Data are missing: lost by the network, or by the capture.
    Hole,
    /// This was sent again, maybe by a host that woke up.
    Again(Stall),
    /// The sender's clock stood still, or its first packet was held up on its way.
    Stood,
}

/// A silence that is over.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // what was the case and what was not
pub struct Silence {
    /// How long it was.
    pub gap_ns: i64,
    /// When it was over.
    pub end_ns: i64,
    /// Whose data the connection waited for.
    pub sender: usize,
    outstanding_bytes: u64,
    next: u64,
    window_shut: bool,
    sacked: bool,
    repaired: bool,
    all_silent: bool,
    /// Others stopped with it, and none of them for want of data.
    others: bool,
    handshake: bool,
    clocks: [Option<(u32, i64)>; 2],
    expected: Option<u32>,
    told: Told,
}

/// Whether a packet is no end of a silence: it probes a window that is shut, or answers that it still is (RFC 9293 section
/// 3.8.6.1). As it does not go on, what the receiver does not read is one silence, however often it is asked.
pub fn asks(connection: &Connection, segment: &Segment, from: usize) -> bool {
    if segment.payload_bytes > 0 || segment.flags.has(Flags::FIN) {
        return false;
    }
    let [client, server] = &connection.halves;
    let (own, other) = if from == 0 {
        (client, server)
    } else {
        (server, client)
    };
    let probes = own
        .sending
        .as_deref()
        .is_some_and(|sending| is_shut(sending) && own.unwrap(segment.sequence) < sending.next);
    let answers = || {
        let known = connection.window_shift(from).zip(other.sending.as_deref());
        known.is_some_and(|(shift, sending)| {
            is_shut(sending) && u64::from(segment.window) << shift < u64::from(sending.mss)
        })
    };
    probes || answers()
}

/// The last window that passed the point has no room for a segment.
fn is_shut(sending: &Sending) -> bool {
    let pending = sending.pending.back().and_then(|ack| ack.window_bytes);
    let window = pending.or(sending.window_bytes);
    window.is_some_and(|window| window < u64::from(sending.mss))
}

/// A gap before a packet, if it is a silence, which began then.
pub fn of(
    connection: &Connection,
    segment: &Segment,
    from: usize,
    (begin_ns, now_ns): (i64, i64),
    quiet: &Quiet,
) -> Option<Silence> {
    let gap_ns = now_ns - begin_ns;
    let halves = &connection.halves;
    let left = |half: usize| outstanding_bytes(&halves[half]);
    let sender = match (left(0) > 0, left(1) > 0) {
        (true, false) => 0,
        (false, true) => 1,
        // Nothing is outstanding: what comes was awaited, maybe the answer to a request.
        _ if halves[from].sending.is_some() || segment.payload_bytes > 0 => from,
        _ => 1 - from,
    };
    let sending = halves[sender].sending.as_deref();
    let srtt_ns = sending.map_or(0, |sending| sending.smoothed.srtt_ns);
    let rtt_ns = match srtt_ns {
        0 => connection.handshake_ns().unwrap_or(0),
        _ => srtt_ns,
    };
    let outstanding_bytes = left(sender);
    let over = segment.flags.has(Flags::FIN) || segment.flags.has(Flags::RST);
    let idle = over && outstanding_bytes == 0 && segment.payload_bytes == 0;
    let handshake = is_opening(connection, segment);
    if gap_ns <= LEAST_RTTS * rtt_ns
        || connection.closed()
        || idle && !connection.owes_an_answer()
        || handshake && !is_slow(connection, segment, from, gap_ns)
        || !handshake && halves.iter().any(|half| half.packets == 0)
    {
        return None;
    }
    let all_silent = quiet.within(begin_ns, now_ns) as f64 >= ALL_SILENT * gap_ns as f64
        && now_ns - quiet.end_ns <= srtt_ns.max(AT_ONCE_NS);
    let here = sending.is_some_and(|sending| sending.vantage == Vantage::Sender);
    let stopped = if here {
        2 * quiet.waiting >= quiet.active
    } else {
        sending.is_some_and(|sending| super::window_limits(sending.rounds.latest))
    };
    Some(Silence {
        gap_ns,
        end_ns: now_ns,
        sender,
        outstanding_bytes,
        next: sending.map_or(halves[sender].next, |sending| sending.next),
        window_shut: sending.is_some_and(is_shut),
        sacked: sending.is_some_and(|sending| sending.board.sacked_bytes() > 0),
        repaired: sending
            .and_then(|sending| sending.board.front())
            .is_some_and(|first| !first.once()),
        all_silent,
        others: all_silent && quiet.active > 1 && stopped,
        handshake,
        clocks: [0, 1].map(|half| halves[half].clock.map(|[_, last]| last)),
        expected: halves[sender].identities.counted(),
        told: Told::Nothing,
    })
}

/// The SYN is not answered, or its answer is not, for all that was seen before this segment: one that is no SYN comes behind
/// an answer, seen or not.
fn is_opening(connection: &Connection, segment: &Segment) -> bool {
    let opens = segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST);
    let answered = connection.established_ns.is_some();
    connection.syn_ns.is_some() && !answered && (opens || connection.synack_ns.is_some())
}

/// A handshake takes longer than its round trip: something is sent again, or a timer would have expired.
fn is_slow(connection: &Connection, segment: &Segment, from: usize, gap_ns: i64) -> bool {
    let again = connection.halves[from].initial == Some(segment.sequence);
    gap_ns >= SYN_TIMEOUT_NS || again
}

/// What a direction has sent and nobody has acknowledged, as far as the capture shows.
fn outstanding_bytes(half: &Half) -> u64 {
    half.sending.as_deref().map_or(0, |sending| {
        let heard = sending.pending.back().map_or(0, |ack| ack.position);
        sending.next.saturating_sub(sending.una.max(heard))
    })
}

impl Silence {
    /// Looks at a packet behind it, which has been taken in: why it was, if nothing that may come can tell otherwise.
    pub fn look(
        &mut self,
        connection: &Connection,
        segment: &Segment,
        from: usize,
        now_ns: i64,
    ) -> Option<Stall> {
        if self.handshake {
            return Some(Stall::Handshake);
        }
        if connection.halves[self.sender].sending.is_none() {
            return Some(Stall::Application);
        }
        if from != self.sender {
            return self.answered(connection, segment, from, now_ns);
        }
        match self.told {
            Told::Nothing | Told::Held if segment.payload_bytes > 0 => {
                self.went_on(connection, segment, now_ns)
            }
            Told::Held => self.stood(connection, now_ns),
            Told::Nothing if self.window_shut => Some(Stall::Receiver), // it probes
            Told::Stood if now_ns - self.end_ns >= self.gap_ns / 4 => {
                let stood = self.behind(connection, from, now_ns) > HELD;
                Some(if stood { Stall::Machine } else { Stall::Host })
            }
            _ => None,
        }
    }

    /// Whether a class is hardly more than a guess: an application may stop all its connections at once, too.
    pub fn is_guess(&self, class: Stall) -> bool {
        class == Stall::Host && self.outstanding_bytes == 0
    }

    /// Why it was, when nothing more comes.
    pub fn likely(&self) -> Stall {
        match self.told {
            Told::Nothing if self.window_shut => Stall::Receiver,
            Told::Nothing if self.outstanding_bytes == 0 => Stall::Application,
            Told::Nothing => Stall::AckDelay,
            Told::Held => Stall::Host,
            Told::Hole => Stall::ContinuousLoss,
            Told::Again(class) => class,
            Told::Stood => Stall::Machine,
        }
    }

    /// The other end sends something.
    fn answered(
        &mut self,
        connection: &Connection,
        segment: &Segment,
        from: usize,
        now_ns: i64,
    ) -> Option<Stall> {
        let acks = segment.flags.has(Flags::ACK);
        let position = connection.halves[self.sender].unwrap(segment.acknowledgement);
        let beyond = acks && position > self.next + 1 && position - self.next < 1 << 28;
        match self.told {
            Told::Hole | Told::Nothing if beyond => Some(Stall::CaptureLoss),
            Told::Hole => Some(Stall::ContinuousLoss),
            Told::Again(class) if !self.held(connection, from, now_ns) => Some(class),
            Told::Again(_) => self.stood(connection, self.end_ns),
            Told::Held | Told::Stood => None,
            Told::Nothing if self.window_shut => Some(Stall::Receiver),
            Told::Nothing if self.outstanding_bytes == 0 => Some(Stall::Application),
            Told::Nothing if self.all_silent && self.held(connection, from, now_ns) => {
                self.told = Told::Held;
                None
            }
            Told::Nothing => Some(Stall::AckDelay),
        }
    }

    /// The sender sends data.
    fn went_on(
        &mut self,
        connection: &Connection,
        segment: &Segment,
        now_ns: i64,
    ) -> Option<Stall> {
        let sending = connection.halves[self.sender].sending.as_deref()?;
        let here = sending.vantage == Vantage::Sender;
        if sending.left_hole {
            self.told = Told::Hole;
            return here.then_some(Stall::CaptureLoss);
        }
        if self.window_shut {
            return Some(Stall::Receiver);
        }
        if let Some(cause) = sending.last_cause {
            let class = self.transport(cause, sending.mss);
            if self.told == Told::Held {
                return self.stood(connection, now_ns);
            }
            if self.all_silent {
                self.told = Told::Again(class);
                return None;
            }
            return Some(class);
        }
        if !here && self.unseen(segment) {
            return Some(Stall::Timeout);
        }
        let stood = self.behind(connection, self.sender, now_ns) > STOOD_STILL;
        if self.told == Told::Held || stood {
            return self.stood(connection, now_ns);
        }
        if self.outstanding_bytes > 0 {
            // A tail loss probe may be of new data (RFC 8985 section 7.3).
            self.told = Told::Again(Stall::TailLoss);
            return (!self.all_silent).then_some(Stall::TailLoss);
        }
        if self.others {
            return self.stood(connection, now_ns);
        }
        Some(Stall::Application)
    }

    /// What was lost when something is sent again, by TAPO's tree.
    fn transport(&self, cause: Cause, mss: u32) -> Stall {
        match cause {
            _ if self.repaired => Stall::DoubleRetransmission,
            Cause::TailProbe => Stall::TailLoss,
            // At a receiver nothing is outstanding: what was lost is not seen.
            _ if self.sacked || self.outstanding_bytes == 0 => Stall::Timeout,
            _ if self.outstanding_bytes < SMALL_WINDOW * u64::from(mss) => Stall::SmallWindow,
            _ => Stall::ContinuousLoss,
        }
    }

    /// A host stood still: whether its clock did is told by the sender's packet, unless that may have been held up too.
    fn stood(&mut self, connection: &Connection, now_ns: i64) -> Option<Stall> {
        let sending = connection.halves[self.sender].sending.as_deref()?;
        if self.behind(connection, self.sender, now_ns) <= STOOD_STILL {
            return Some(Stall::Host);
        }
        self.told = Told::Stood;
        (sending.vantage == Vantage::Sender).then_some(Stall::Machine)
    }

    /// What just came was sent early in the silence.
    fn held(&self, connection: &Connection, from: usize, now_ns: i64) -> bool {
        self.behind(connection, from, now_ns) > HELD
    }

    /// By how much less than the time since its last packet before the silence an end's clock moved, as timestamps tell,
    /// in shares of the silence; 0 if nobody knows.
    fn behind(&self, connection: &Connection, from: usize, now_ns: i64) -> f64 {
        let Some((before, [first, last])) = self.clocks[from].zip(connection.halves[from].clock)
        else {
            return 0.0;
        };
        let (known_ns, passed_ns) = (before.1 - first.1, now_ns - before.1);
        let ticks = f64::from(before.0.wrapping_sub(first.0));
        let tick_ns = if known_ns < CLOCK_NS || ticks == 0.0 {
            SLOWEST_TICK_NS
        } else {
            known_ns as f64 / ticks
        };
        let moved_ns = tick_ns * f64::from(last.0.wrapping_sub(before.0));
        (passed_ns as f64 - moved_ns) / self.gap_ns as f64
    }

    /// The sender has sent packets in the silence that did not come so far, by the identification of the next.
    fn unseen(&self, segment: &Segment) -> bool {
        let ahead = self
            .expected
            .zip(segment.identification)
            .map_or(0, |(expected, number)| {
                number.wrapping_sub(expected) & 0xffff
            });
        self.outstanding_bytes == 0 && (1..MOST_UNSEEN).contains(&ahead)
    }
}
