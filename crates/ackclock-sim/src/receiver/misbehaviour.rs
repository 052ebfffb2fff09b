//! Receivers that break the rules, for a faster transfer than the path allows.
//!
//! S. Savage, N. Cardwell, D. Wetherall, T. Anderson: TCP congestion control with a misbehaving receiver, ACM CCR 29(5),
//! 1999, section 2. ACK division: several ACKs for each, each of a part of the last segment. DupACK spoofing: copies of
//! each ACK. Optimistic ACKs: segments are acknowledged before they arrive, so the sender takes the path for a shorter
//! one; what is lost is acknowledged as well, and is never sent again. RFC 3168 section 7 (ECN): a receiver that reports
//! no mark.
//!
//! A sender's defences are elsewhere: byte counting (RFC 3465), duplicates that count only with SACK blocks (RFC 6675),
//! ACKs of what was not sent are ignored (RFC 9293 section 3.10.7.4). There is no nonce (RFC 3540), nor the limit to what
//! duplicates release without SACK that RFC 5681 section 3.2 allows.
//!
//! Deviations: an ACK is divided into at most [`Flags::PARTS`]. An optimistic receiver comes one segment further ahead
//! with each that arrives, so that no ACK is of what a window-limited sender has not sent, and begins anew when a segment
//! arrives again: the sender was not as far.

use ackclock_plan::Misbehaviour;

use super::{Receiver, Reply};
use crate::packet::{Ecn, Flags, Kind, Packet};

/// A receiver's misbehaviour and its state.
pub struct State {
    plan: Misbehaviour,
    /// Segments that are acknowledged before they arrive, at present.
    lead: u32,
    /// Next segment expected by the last ACK.
    acknowledged: u64,
    /// Segments that were passed over, as if they had arrived.
    concealed: u64,
}

impl State {
    /// The state of a plan.
    pub fn new(plan: Misbehaviour) -> State {
        State {
            plan,
            lead: 0,
            acknowledged: 0,
            concealed: 0,
        }
    }

    /// True if it acknowledges segments that have not arrived.
    pub fn conceals_losses(&self) -> bool {
        self.plan.conceals_losses || self.plan.optimistic_acks > 0
    }
}

impl Receiver {
    /// True if each of its ACKs must pass [`Receiver::misbehave`].
    #[inline(always)]
    pub fn misbehaves(&self) -> bool {
        self.misbehaviour.is_some()
    }

    /// The ACKs that a misbehaving receiver sends in place of one.
    #[cold]
    pub fn misbehave(&mut self, reply: &Reply) -> impl Iterator<Item = Reply> {
        let mut reply = *reply;
        let (mut division, mut duplicates) = (1, 0);
        if let (Some(state), Kind::Ack) = (&mut self.misbehaviour, reply.kind) {
            // The last segment may have the FIN, which is acknowledged with ours.
            let end = self.workload.end.saturating_sub(1);
            let claimed = reply.ack.saturating_add(u64::from(state.lead)).min(end);
            reply.ack = claimed.max(reply.ack);
            if reply.ack > state.acknowledged {
                state.acknowledged = reply.ack;
                division = state.plan.ack_division;
            }
            duplicates = state.plan.duplicate_acks;
        }
        self.sent_packets += u64::from(division - 1 + duplicates);
        let whole = reply;
        let parts = (1..division).map(move |part| Reply {
            ack: whole.ack - 1,
            flags: whole.flags.with_part(part * Flags::PARTS / division),
            ..whole
        });
        let copies = (0..duplicates).map(move |_| Reply {
            flags: whole.flags.with_opened(false),
            ..whole
        });
        parts.chain([whole]).chain(copies)
    }

    /// Acknowledge a segment behind a gap as if those in the gap had arrived; returns whether it does so. A segment
    /// that arrives again ends the lead of optimistic ACKs.
    pub(super) fn conceal_gap(&mut self, sequence: u64) -> bool {
        match &mut self.misbehaviour {
            Some(state) if sequence < self.next => {
                state.lead = 0;
                false
            }
            Some(state) if state.conceals_losses() => {
                state.concealed += sequence - self.next;
                self.next = sequence;
                true
            }
            _ => false,
        }
    }

    /// Get one segment further ahead, up to the plan's number.
    pub(super) fn get_ahead(&mut self) {
        if let Some(state) = &mut self.misbehaviour {
            state.lead = (state.lead + 1).min(state.plan.optimistic_acks);
        }
    }

    /// A segment as the receiver's ECN feedback is to see it.
    pub(super) fn without_mark(&self, packet: &Packet) -> Packet {
        match &self.misbehaviour {
            Some(state) if state.plan.conceals_marks && packet.ecn() == Ecn::Ce => Packet {
                flags: packet.flags.with_ecn(Ecn::Ect0),
                ..*packet
            },
            _ => *packet,
        }
    }

    /// Segments that were passed over.
    pub(super) fn concealed_segments(&self) -> u64 {
        let state = self.misbehaviour.as_ref();
        state.map_or(0, |state| state.concealed)
    }
}
