//! Opening and closing a connection at its receiver (RFC 9293 sections 3.5 and 3.6).

use ackclock_core::Time;

use super::{Receiver, Reply, State};
use crate::packet::Kind;

impl Receiver {
    pub(super) fn on_syn(&mut self, timestamp: Time, now: Time) -> Option<Reply> {
        match self.state {
            State::Listen | State::SynReceived => {
                self.state = State::SynReceived;
                self.echo = timestamp;
                self.set_timer(now + self.control_rto);
                self.compression.on_opening(now);
                self.window.on_opening(now);
                Some(self.control(Kind::SynAck))
            }
            // The sender has not received our SYN/ACK: RFC 9293 section 3.10.7.4 replies with an ACK.
            _ => None,
        }
    }

    pub(super) fn on_last_ack(&mut self, now: Time) {
        match self.state {
            State::SynReceived => self.establish(now),
            State::LastAck => {
                self.state = State::Closed;
                self.set_timer(Time::NEVER);
            }
            _ => {}
        }
    }

    pub(super) fn establish(&mut self, now: Time) {
        self.compression.on_opened(now);
        self.window.on_opened(now);
        self.state = State::Established;
        self.set_timer(Time::NEVER);
        self.control_rto = self.initial_rto;
    }

    pub(super) fn repeat(&mut self, kind: Kind, now: Time) -> Reply {
        self.control_rto = (self.control_rto + self.control_rto).min(self.max_rto);
        self.set_timer(now + self.control_rto);
        if kind == Kind::SynAck {
            self.compression.on_opening(now);
            self.window.on_opening(now);
        }
        self.control(kind)
    }

    pub(super) fn control(&mut self, kind: Kind) -> Reply {
        self.sent_packets += 1;
        Reply {
            kind,
            ack: self.next,
            window: self.advertise(),
            echo: self.echo,
            wire_bytes: match kind {
                Kind::SynAck | Kind::ClientSyn => self.syn_ack_bytes,
                _ => self.ack_bytes,
            },
            blocks: None,
            flags: self.echo_of_marks.flags(),
        }
    }

    pub(super) fn close(&mut self, now: Time) -> Reply {
        self.state = State::LastAck;
        self.set_timer(now + self.control_rto);
        self.pending = 0;
        self.control(Kind::FinAck)
    }
}
