//! The class of a stall: TAPO's decision tree over the packets that end it.

use super::{Evidence, OpenStall, MAX_RESUME_NS};
use crate::flow::{Connection, MAX_RETRANSMISSION_GAP_NS};
use crate::tables::{RetransmitCause, Stall, Vantage};
use ackclock_pcap::packet::{Flags, Segment};

/// A clock that is behind by more than this share of a stall stood still in it.
const CLOCK_STOPPED: f64 = 0.8;
/// The share of a stall in which a packet was sent, by its TSval, that shows that it was held up.
const EARLY_SHARE: f64 = 0.5;
/// With fewer segments outstanding there are not enough duplicate acknowledgements.
const SMALL_WINDOW: u64 = 4;
/// A clock's rate is known after so long.
const CLOCK_NS: i64 = 500_000_000;
/// Until then no clock is taken to be slower than this (RFC 7323 section 5.4).
const SLOWEST_TICK_NS: f64 = 100e6;
/// An identification that is further ahead is no evidence of lost packets where the data have no hole.
const MAX_IP_ID_GAP: u32 = 256;
/// An acknowledgement is delayed by less (RFC 1122 section 4.2.3.2).
const MAX_DELAYED_ACK_NS: i64 = 500_000_000;

impl OpenStall {
    /// Process a packet after the stall, once its direction has it; return the class when no later packet can change
    /// it.
    pub fn on_packet(
        &mut self,
        connection: &Connection,
        segment: &Segment,
        from: usize,
        now_ns: i64,
    ) -> Option<Stall> {
        if self.handshake {
            let class = if self.skips_data {
                Stall::CaptureLoss
            } else {
                Stall::Handshake
            };
            return Some(class);
        }
        if connection.directions[self.sender].sender_view.is_none() {
            return Some(Stall::Application);
        }
        if from != self.sender {
            return self.on_reply(connection, segment, from, now_ns);
        }
        match self.evidence {
            Evidence::Pending | Evidence::HeldUp if segment.payload_bytes > 0 => {
                self.on_data(connection, segment, now_ns)
            }
            Evidence::DelayedAck if segment.payload_bytes > 0 => {
                Some(self.on_data_after_ack(connection, now_ns))
            }
            Evidence::HeldUp => self.classify_stopped_host(connection, now_ns),
            Evidence::Overdue if self.is_retransmitted(connection, segment) => {
                Some(Stall::TailLoss)
            }
            Evidence::Pending if self.window_shut => Some(Stall::Receiver), // it probes
            // It closes, and retransmits nothing: an acknowledgement came that the capture does not have.
            Evidence::Pending if segment.flags.has(Flags::FIN) => Some(Stall::Application),
            Evidence::ClockStopped if now_ns - self.end_ns >= self.gap_ns / 4 => {
                let clock_stopped = self.clock_lag(connection, from, now_ns) > EARLY_SHARE;
                Some(if clock_stopped {
                    Stall::Machine
                } else {
                    Stall::Host
                })
            }
            _ => None,
        }
    }

    /// Return true if a class is hardly more than a guess: an application may stop all its connections at once, too.
    pub fn is_low_confidence(&self, class: Stall) -> bool {
        class == Stall::Host && self.outstanding_bytes == 0
    }

    /// Why it was, when nothing more comes.
    pub fn likely(&self) -> Stall {
        match self.evidence {
            Evidence::Pending if self.window_shut => Stall::Receiver,
            Evidence::Pending if self.outstanding_bytes == 0 => Stall::Application,
            Evidence::Pending => Stall::AckDelay,
            Evidence::DelayedAck | Evidence::Overdue => Stall::Application,
            Evidence::HeldUp => Stall::Host,
            Evidence::Hole => Stall::ContinuousLoss,
            Evidence::Retransmission(class) => class,
            Evidence::ClockStopped => Stall::Machine,
        }
    }

    /// Classify by a packet of the other end.
    fn on_reply(
        &mut self,
        connection: &Connection,
        segment: &Segment,
        from: usize,
        now_ns: i64,
    ) -> Option<Stall> {
        let acks = segment.flags.has(Flags::ACK);
        let position = connection.directions[self.sender].unwrap(segment.acknowledgement);
        let skips_data = acks && position > self.snd_nxt + 1 && position - self.snd_nxt < 1 << 28;
        match self.evidence {
            Evidence::Hole | Evidence::Pending if skips_data => Some(Stall::CaptureLoss),
            Evidence::Hole => Some(Stall::ContinuousLoss),
            Evidence::Retransmission(class) if !self.was_held_up(connection, from, now_ns) => {
                Some(class)
            }
            Evidence::Retransmission(_) => self.classify_stopped_host(connection, self.end_ns),
            Evidence::Overdue if acks && position >= self.snd_nxt => Some(Stall::Application),
            Evidence::HeldUp
            | Evidence::ClockStopped
            | Evidence::DelayedAck
            | Evidence::Overdue => None,
            Evidence::Pending if self.window_shut => Some(Stall::Receiver),
            Evidence::Pending if self.outstanding_bytes == 0 => Some(Stall::Application),
            Evidence::Pending
                if self.capture_stalled && self.was_held_up(connection, from, now_ns) =>
            {
                self.evidence = Evidence::HeldUp;
                None
            }
            // Whoever hears nothing for so long sends again: an acknowledgement came that the capture does not have.
            // Nor may an acknowledgement alone be awaited for so little: the other end's application took that long.
            Evidence::Pending
                if segment.payload_bytes > 0
                    && (self.gap_ns > MAX_RETRANSMISSION_GAP_NS
                        || self.may_be_delayed_ack(connection)) =>
            {
                self.sender = from;
                Some(Stall::Application)
            }
            Evidence::Pending if self.may_be_delayed_ack(connection) => {
                self.evidence = Evidence::DelayedAck;
                None
            }
            Evidence::Pending => Some(Stall::AckDelay),
        }
    }

    /// The sender sends data.
    fn on_data(
        &mut self,
        connection: &Connection,
        segment: &Segment,
        now_ns: i64,
    ) -> Option<Stall> {
        let sender_view = connection.directions[self.sender].sender_view.as_deref()?;
        let is_at_sender = sender_view.vantage == Vantage::Sender;
        if sender_view.left_hole {
            self.evidence = Evidence::Hole;
            return is_at_sender.then_some(Stall::CaptureLoss);
        }
        if self.window_shut {
            return Some(Stall::Receiver);
        }
        if let Some(cause) = sender_view.last_cause {
            let class = self.classify_loss(cause, sender_view.mss);
            if self.evidence == Evidence::HeldUp {
                return self.classify_stopped_host(connection, now_ns);
            }
            if self.capture_stalled {
                self.evidence = Evidence::Retransmission(class);
                return None;
            }
            return Some(class);
        }
        if !is_at_sender && self.has_ip_id_gap(segment, self.expected) {
            // Of a silence that outlasts timers, other connections of the host may have used the numbers.
            let is_own = connection.directions[self.sender].ip_id.is_of_connection();
            let is_sure = is_own || self.ended_full || self.gap_ns <= MAX_RETRANSMISSION_GAP_NS;
            return Some(if is_sure {
                Stall::Timeout
            } else {
                Stall::Unknown
            });
        }
        let clock_stopped = self.clock_lag(connection, self.sender, now_ns) > CLOCK_STOPPED;
        if self.evidence == Evidence::HeldUp || clock_stopped {
            return self.classify_stopped_host(connection, now_ns);
        }
        if self.is_overdue {
            self.evidence = Evidence::Overdue;
            return None;
        }
        if self.outstanding_bytes > 0 {
            // A tail loss probe may be of new data (RFC 8985 section 7.3).
            self.evidence = Evidence::Retransmission(Stall::TailLoss);
            return (!self.capture_stalled).then_some(Stall::TailLoss);
        }
        if self.others_stopped {
            return self.classify_stopped_host(connection, now_ns);
        }
        // Without identifications, packets that were lost before the vantage point leave no trace.
        let may_be_outage = !is_at_sender
            && (self.ended_full && self.expected.is_none()
                || self.has_ip_id_gap(segment, self.after_handshake));
        Some(if may_be_outage {
            Stall::Unknown
        } else {
            Stall::Application
        })
    }

    /// Return true if a packet retransmits what was outstanding in the stall.
    fn is_retransmitted(&self, connection: &Connection, segment: &Segment) -> bool {
        let direction = &connection.directions[self.sender];
        let view = direction.sender_view.as_deref();
        segment.payload_bytes > 0
            && direction.unwrap(segment.sequence) < self.snd_nxt
            && view.is_some_and(|view| view.last_cause.is_some())
    }

    /// Return true if a receiver may have delayed the acknowledgement that ends the stall: of one segment, and for as
    /// long as RFC 1122 permits.
    fn may_be_delayed_ack(&self, connection: &Connection) -> bool {
        let sender_view = connection.directions[self.sender].sender_view.as_deref();
        let is_one_segment = sender_view
            .is_some_and(|sender_view| self.outstanding_bytes <= u64::from(sender_view.mss));
        is_one_segment && self.gap_ns <= MAX_DELAYED_ACK_NS + self.rtt_ns
    }

    /// The sender sends data after a delayed acknowledgement: it waited for that if it does so at once, and by Nagle's
    /// algorithm if its segments are small.
    fn on_data_after_ack(&self, connection: &Connection, now_ns: i64) -> Stall {
        let sender_view = connection.directions[self.sender].sender_view.as_deref();
        if sender_view.is_some_and(|sender_view| sender_view.totals.nagle_waits > self.nagle_waits)
        {
            Stall::Nagle
        } else if now_ns - self.end_ns <= self.rtt_ns.max(MAX_RESUME_NS) {
            Stall::AckDelay
        } else {
            Stall::Application
        }
    }

    /// Classify the loss behind a retransmission by TAPO's decision tree.
    fn classify_loss(&self, cause: RetransmitCause, mss: u32) -> Stall {
        match cause {
            _ if self.head_retransmitted => Stall::DoubleRetransmission,
            RetransmitCause::TailProbe => Stall::TailLoss,
            // At a receiver nothing is outstanding: what was lost is not seen.
            _ if self.sacked || self.outstanding_bytes == 0 => Stall::Timeout,
            _ if self.outstanding_bytes < SMALL_WINDOW * u64::from(mss) => Stall::SmallWindow,
            _ => Stall::ContinuousLoss,
        }
    }

    /// A host stood still: whether its clock did is told by the sender's packet, unless that may have been held up too.
    fn classify_stopped_host(&mut self, connection: &Connection, now_ns: i64) -> Option<Stall> {
        let sender_view = connection.directions[self.sender].sender_view.as_deref()?;
        if self.clock_lag(connection, self.sender, now_ns) <= CLOCK_STOPPED {
            return Some(Stall::Host);
        }
        self.evidence = Evidence::ClockStopped;
        (sender_view.vantage == Vantage::Sender).then_some(Stall::Machine)
    }

    /// Return true if the last packet was sent early in the stall.
    fn was_held_up(&self, connection: &Connection, from: usize, now_ns: i64) -> bool {
        self.clock_lag(connection, from, now_ns) > EARLY_SHARE
    }

    /// By how much less than the time since its last packet before the stall an end's clock moved, as timestamps tell,
    /// in shares of the stall; 0 if it is unknown.
    fn clock_lag(&self, connection: &Connection, from: usize, now_ns: i64) -> f64 {
        let Some((before, [first, last])) =
            self.clocks[from].zip(connection.directions[from].tsval_span)
        else {
            return 0.0;
        };
        if last.1 < self.end_ns {
            return 0.0; // its packets have timestamps no longer: the other end did not agree to them
        }
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

    /// The sender has sent packets in the stall that did not come so far, by the identification of the next.
    fn has_ip_id_gap(&self, segment: &Segment, expected: Option<u32>) -> bool {
        let ahead = expected
            .zip(segment.identification)
            .map_or(0, |(expected, number)| {
                number.wrapping_sub(expected) & 0xffff
            });
        self.outstanding_bytes == 0 && (1..MAX_IP_ID_GAP).contains(&ahead)
    }
}
