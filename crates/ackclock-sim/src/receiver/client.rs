//! A receiver that opens the connection and requests the data, as a web browser does.
//!
//! ```text
//! receiver (client)                            sender (server)
//!    SYN         ────────────▶
//!                ◀────────────  SYN/ACK
//!    ACK+request ────────────▶                 one segment; without bytes, the bare ACK
//!                ◀────────────  data …
//! ```
//!
//! Sources: RFC 9293 section 3.5, RFC 6298 (the SYN is retransmitted after `initial_rto`, the request after the timeout
//! that the handshake's RTT gives, each time twice as long, until data arrive).
//!
//! Deviations: the handshake is a sample only if the SYN was sent once (Karn's rule), even with timestamps. The
//! sender acknowledges the request with its data only. Establishment and completion are measured
//! here: at the arrival of the SYN/ACK and of the last byte.

use ackclock_core::tables::EventKind;
use ackclock_core::Time;
use ackclock_plan::TcpPlan;

use super::{Receiver, Reply, State};
use crate::packet::{Kind, Packet};
use crate::rtt::RttEstimator;

/// State of a receiver that opens the connection.
#[derive(Clone, Debug)]
pub struct Client {
    request_bytes: u32,
    rtt: RttEstimator,
    syn_sent: Time,
    /// Retransmitted SYNs.
    pub syn_retransmissions: u64,
    /// Arrival of the SYN/ACK.
    pub established: Option<Time>,
    /// Arrival of the last byte, or of the FIN in an empty transfer; with a slow reader, its read.
    pub finished: Option<Time>,
    events: Vec<(Time, EventKind)>,
}

impl Client {
    /// A client with a request of `request_bytes`.
    pub fn new(request_bytes: u32, tcp: &TcpPlan) -> Client {
        Client {
            request_bytes,
            rtt: RttEstimator::new(tcp),
            syn_sent: Time::ZERO,
            syn_retransmissions: 0,
            established: None,
            finished: None,
            events: Vec::new(),
        }
    }

    /// Take the events since the last call.
    pub fn take_events(&mut self) -> Vec<(Time, EventKind)> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn finish(&mut self, now: Time) {
        if self.finished.is_none() {
            self.finished = Some(now);
            self.events.push((now, EventKind::Finished));
        }
    }
}

impl Receiver {
    /// The client's side, if this end opens the connection.
    #[inline]
    pub fn client(&self) -> Option<&Client> {
        self.client.as_deref()
    }

    /// The client's side, mutable, if this end opens the connection.
    #[inline]
    pub fn client_mut(&mut self) -> Option<&mut Client> {
        self.client.as_deref_mut()
    }

    /// Open the connection with a SYN.
    pub fn open(&mut self, now: Time) -> Option<Reply> {
        self.state = State::SynSent;
        self.send_syn(now)
    }

    fn send_syn(&mut self, now: Time) -> Option<Reply> {
        let client = self.client.as_mut()?;
        client.syn_sent = now;
        let retransmitted = client.syn_retransmissions > 0;
        let rto = client.rtt.rto();
        self.set_timer(now + rto);
        let syn = self.control(Kind::ClientSyn);
        Some(Reply {
            flags: syn.flags.with_retransmitted(retransmitted),
            ..syn
        })
    }

    pub(super) fn repeat_syn(&mut self, now: Time) -> Option<Reply> {
        let client = self.client.as_mut()?;
        client.syn_retransmissions += 1;
        client.rtt.backoff();
        client.events.push((now, EventKind::SynRetransmission));
        self.send_syn(now)
    }

    /// Reply to a SYN/ACK with the request, and to a repeated one with an ACK (RFC 9293 section 3.10.7.4).
    #[cold]
    pub(super) fn on_server_syn_ack(&mut self, packet: &Packet, now: Time) -> Option<Reply> {
        match self.state {
            State::SynSent => {}
            State::Requested | State::Established => return Some(self.control(Kind::Ack)),
            _ => return None,
        }
        self.state = State::Requested;
        self.echo = packet.timestamp;
        let client = self.client.as_mut()?;
        client.rtt.reset_backoff();
        if client.syn_retransmissions == 0 {
            client.rtt.sample(now.since(client.syn_sent), 0, 0);
        } else {
            client.rtt.start_after_lost_syn();
        }
        client.established = Some(now);
        self.compression.on_opening(client.syn_sent);
        self.compression.on_opened(now);
        self.window.on_opened(now);
        client.events.push((now, EventKind::Established));
        self.request(now, false)
    }

    pub(super) fn repeat_request(&mut self, now: Time) -> Option<Reply> {
        self.client.as_mut()?.rtt.backoff();
        self.request(now, true)
    }

    fn request(&mut self, now: Time, retransmitted: bool) -> Option<Reply> {
        let client = self.client.as_ref()?;
        let (bytes, rto) = (client.request_bytes, client.rtt.rto());
        self.set_timer(now + rto);
        self.window.on_opening(now);
        let request = self.control(Kind::Request);
        Some(Reply {
            flags: request.flags.with_retransmitted(retransmitted),
            wire_bytes: request.wire_bytes + bytes,
            ..request
        })
    }

    /// Record the end of the data, once the application has read them.
    #[cold]
    pub(super) fn note_end(&mut self, now: Time) {
        let all = self.next >= self.workload.segments.max(1) && !self.has_unread();
        if let Some(client) = &mut self.client {
            if all {
                client.finish(now);
            }
        }
    }
}
