//! The handshake of a QUIC connection: its round trips from the vantage point to both ends (RFC 9312 section 3.8.1),
//! and waits for the anti-amplification limit (RFC 9000 section 8.1).
//!
//! ```text
//!   client        vantage point        server
//!   Initial ───────────┬─────────────────▶
//!                      │ to_server
//!          ◀───────────┼───────── Initial
//!            to_client │
//!   Initial/Handshake ─┴─────────────────▶
//! ```
//!
//! The client's answer is a Handshake packet, or an Initial to the connection ID that the server chose: either shows
//! that the server's packet arrived. Processing at the ends is part of the round trips.

use ackclock_pcap::packet::{ConnectionId, Datagram, PacketTypes};

/// The server may send so many times the bytes that it received before it has validated the client's address.
const AMPLIFICATION: u64 = 3;
/// The Initials of a client are one flight if the time from the first to the server's answer is no more than so many
/// times that from the last; otherwise it is unknown to which of them the answer is (Karn's rule).
const MAX_SPREAD: f64 = 1.25;
/// A client that sends Initials for longer has retransmitted one: its first timer runs for three initial RTTs of 333 ms
/// (RFC 9002 section 6.2.2), in many stacks for less.
const RETRANSMITTED_NS: i64 = 500_000_000;

/// A server that waits until it may send on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AmplificationWait {
    /// The number of waits.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub waited_ns: i64,
    /// The bytes that the server had sent and received when the first began.
    pub sent_bytes: u64,
    /// The bytes that the client had sent by then.
    pub received_bytes: u64,
}

/// The progress of a handshake.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    /// The client's first Initial of this attempt, and its last before the answer.
    first_initial_ns: Option<i64>,
    last_initial_ns: i64,
    /// The first Initial of all attempts.
    begin_ns: Option<i64>,
    answered_ns: Option<i64>,
    /// The server's connection ID as it answered.
    server_id: Option<ConnectionId>,
    /// From the vantage point to the server and back, in nanoseconds.
    pub to_server_ns: Option<i64>,
    /// From the vantage point to the client and back, in nanoseconds.
    pub to_client_ns: Option<i64>,
    /// True for a client that has sent packets with a short header, and for a server that has sent one afterwards.
    short: [bool; 2],
    /// When both have.
    pub complete_ns: Option<i64>,
    /// Datagrams of the server.
    server_datagrams: u64,
    /// The client's address is validated, or no Initial of it was seen.
    validated: bool,
    /// Bytes that each end has sent.
    bytes: [u64; 2],
    /// When the server last sent, and what it had received by then.
    paused: Option<(i64, u64)>,
    /// Waits for the anti-amplification limit.
    pub amplification: AmplificationWait,
}

impl Handshake {
    /// Take a datagram of one end, 0 the client.
    pub fn take(&mut self, end: usize, datagram: &Datagram, now_ns: i64) {
        let types = datagram.quic.types;
        if types.has(PacketTypes::SHORT) {
            // A server may send before the handshake is complete, and in vain.
            self.short[end] |= end == 0 || self.short[0];
            if self.short == [true; 2] {
                self.complete_ns.get_or_insert(now_ns);
            }
        }
        if end == 0 {
            self.client(datagram, now_ns);
        } else {
            self.server(datagram, now_ns);
        }
        self.bytes[end] += u64::from(datagram.payload_bytes);
    }

    fn client(&mut self, datagram: &Datagram, now_ns: i64) {
        let headers = &datagram.quic;
        self.validated |= headers
            .types
            .has(PacketTypes::HANDSHAKE | PacketTypes::SHORT);
        match self.answered_ns {
            None if headers.types.has(PacketTypes::INITIAL) => {
                self.begin_ns.get_or_insert(now_ns);
                self.first_initial_ns.get_or_insert(now_ns);
                self.last_initial_ns = now_ns;
            }
            Some(answered_ns) if self.to_client_ns.is_none() => {
                let is_to_server =
                    headers.destination_id.is_some() && headers.destination_id == self.server_id;
                let is_answer = headers.types.has(PacketTypes::HANDSHAKE)
                    || (headers.types.has(PacketTypes::INITIAL) && is_to_server);
                self.to_client_ns = is_answer.then(|| now_ns - answered_ns);
            }
            _ => {}
        }
    }

    fn server(&mut self, datagram: &Datagram, now_ns: i64) {
        let types = datagram.quic.types;
        self.server_datagrams += 1;
        if types.has(PacketTypes::RETRY | PacketTypes::VERSION_NEGOTIATION) {
            if self.answered_ns.is_none() {
                self.validated |= types.has(PacketTypes::RETRY);
                self.first_initial_ns = None;
            }
            return;
        }
        if self.answered_ns.is_none() && types.has(PacketTypes::INITIAL | PacketTypes::HANDSHAKE) {
            self.answered_ns = Some(now_ns);
            self.server_id = datagram.quic.source_id;
            if let Some(first_ns) = self.first_initial_ns {
                let (longest, shortest) = (now_ns - first_ns, now_ns - self.last_initial_ns);
                let is_one_flight = longest as f64 <= MAX_SPREAD * shortest as f64;
                self.to_server_ns = is_one_flight.then_some(shortest);
            }
        }
        self.limit(datagram, now_ns);
    }

    /// Count a wait if the limit did not allow this datagram when the server sent the one before it.
    fn limit(&mut self, datagram: &Datagram, now_ns: i64) {
        let [received, sent] = self.bytes;
        let sent_then = sent + u64::from(datagram.payload_bytes);
        // More than the limit allows: the address was validated otherwise, as by a token.
        self.validated |= sent_then > AMPLIFICATION * received || self.begin_ns.is_none();
        let before = self.paused.replace((now_ns, received));
        let is_handshake = datagram.quic.types.has(PacketTypes::HANDSHAKE);
        let Some((paused_ns, received_then)) = before.filter(|_| !self.validated && is_handshake)
        else {
            return;
        };
        if received > received_then && sent_then > AMPLIFICATION * received_then {
            let wait = &mut self.amplification;
            if wait.count == 0 {
                (wait.sent_bytes, wait.received_bytes) = (sent, received_then);
            }
            wait.count += 1;
            wait.waited_ns += now_ns - paused_ns;
        }
    }

    /// Return true if the server has answered with more than a Retry or Version Negotiation packet.
    pub fn has_response(&self) -> bool {
        self.answered_ns.is_some()
    }

    /// Return the state: `complete`, `answered`, `unanswered` with a retransmission, or None if it is undecided.
    pub fn state(&self) -> Option<&'static str> {
        if self.complete_ns.is_some() {
            return Some("complete");
        }
        if self.answered_ns.is_some() {
            return Some("answered");
        }
        let tried_ns = self.last_initial_ns - self.begin_ns?;
        let is_unanswered =
            self.server_datagrams == 0 && !self.short[0] && tried_ns >= RETRANSMITTED_NS;
        is_unanswered.then_some("unanswered")
    }

    /// Return the RTT of the whole path, in nanoseconds.
    pub fn rtt_ns(&self) -> Option<i64> {
        Some(self.to_server_ns? + self.to_client_ns?)
    }

    /// Return the time from the client's first Initial to its last before an answer, in nanoseconds.
    pub fn tried_ns(&self) -> i64 {
        self.begin_ns
            .map_or(0, |begin_ns| self.last_initial_ns - begin_ns)
    }

    /// Return the time from the client's first Initial until both ends had sent a short header, in nanoseconds.
    pub fn duration_ns(&self) -> Option<i64> {
        Some(self.complete_ns? - self.begin_ns?)
    }
}
