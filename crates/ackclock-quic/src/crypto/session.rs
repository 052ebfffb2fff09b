//! The handshake of one end, as the stack's interface asks for it.

use std::any::Any;
use std::collections::VecDeque;

use noq_proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

use super::handshake::{self, Kind};
use super::keys::{keys, packet_keys, Level};

/// TLS alerts (RFC 8446 section 6).
const UNEXPECTED_MESSAGE: u8 = 10;
const DECODE_ERROR: u8 = 50;

/// Sessions of clients.
pub struct Client;

/// Sessions of servers.
pub struct Server {
    /// Bytes of the certificates that a server sends.
    pub certificate_chain_bytes: usize,
}

/// Messages at one level of protection, and the level that follows.
struct Flight {
    messages: Vec<u8>,
    next: Option<Level>,
}

/// The handshake of one end.
struct NullSession {
    side: Side,
    certificate_chain_bytes: usize,
    parameters: Vec<u8>,
    peer: Option<TransportParameters>,
    /// Bytes of messages that are not complete.
    arrived: Vec<u8>,
    /// The message that comes next; none when the handshake is complete.
    expected: Option<Kind>,
    flights: VecDeque<Flight>,
}

impl NullSession {
    fn new(side: Side, certificate_chain_bytes: usize, own: &TransportParameters) -> NullSession {
        let mut parameters = Vec::new();
        own.write(&mut parameters);
        let mut session = NullSession {
            side,
            certificate_chain_bytes,
            parameters,
            peer: None,
            arrived: Vec::new(),
            expected: Some(Kind::ClientHello),
            flights: VecDeque::new(),
        };
        if side == Side::Client {
            session.expected = Some(Kind::ServerHello);
            let hello = session.message(Kind::ClientHello);
            session.send(&[hello], None);
        }
        session
    }

    fn message(&self, kind: Kind) -> Vec<u8> {
        let (zeros, content): (usize, &[u8]) = match kind {
            Kind::ClientHello | Kind::EncryptedExtensions => (0, &self.parameters),
            Kind::Certificate => (self.certificate_chain_bytes, &[]),
            Kind::ServerHello | Kind::CertificateVerify | Kind::Finished => (0, &[]),
        };
        let mut message = Vec::new();
        handshake::write(kind, zeros, content, &mut message);
        message
    }

    fn send(&mut self, messages: &[Vec<u8>], next: Option<Level>) {
        let messages = messages.concat();
        self.flights.push_back(Flight { messages, next });
    }

    fn on_message(&mut self, kind: Kind, body: &[u8]) -> Result<(), TransportError> {
        if self.expected != Some(kind) {
            let reason = format!("found {kind:?}; expected {:?}", self.expected);
            return Err(alert(UNEXPECTED_MESSAGE, reason));
        }
        if matches!(kind, Kind::ClientHello | Kind::EncryptedExtensions) {
            let mut parameters = body.get(kind.fixed_bytes()..).unwrap_or_default();
            self.peer = Some(TransportParameters::read(self.side, &mut parameters)?);
        }
        self.expected = match kind {
            Kind::ClientHello => {
                self.send_server_flights();
                Some(Kind::Finished)
            }
            Kind::ServerHello => {
                self.send(&[], Some(Level::Handshake));
                Some(Kind::EncryptedExtensions)
            }
            Kind::EncryptedExtensions => Some(Kind::Certificate),
            Kind::Certificate => Some(Kind::CertificateVerify),
            Kind::CertificateVerify => Some(Kind::Finished),
            Kind::Finished => {
                if self.side == Side::Client {
                    let finished = self.message(Kind::Finished);
                    self.send(&[finished], Some(Level::OneRtt));
                }
                None
            }
        };
        Ok(())
    }

    /// The two flights of a server.
    fn send_server_flights(&mut self) {
        let hello = self.message(Kind::ServerHello);
        self.send(&[hello], Some(Level::Handshake));
        let rest = [
            Kind::EncryptedExtensions,
            Kind::Certificate,
            Kind::CertificateVerify,
            Kind::Finished,
        ];
        let rest = rest.map(|kind| self.message(kind));
        self.send(&rest, Some(Level::OneRtt));
    }
}

fn alert(description: u8, reason: String) -> TransportError {
    TransportError::new(TransportErrorCode::crypto(description), reason)
}

impl Session for NullSession {
    fn initial_keys(&self, _connection_id: ConnectionId, _side: Side) -> Keys {
        keys(Level::Initial)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(false)
    }

    fn is_handshaking(&self) -> bool {
        self.expected.is_some()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.arrived.extend_from_slice(bytes);
        let unknown = |code| {
            alert(
                DECODE_ERROR,
                format!("found a handshake message of type {code}"),
            )
        };
        while let Some((kind, body)) = handshake::take(&mut self.arrived).map_err(unknown)? {
            self.on_message(kind, &body)?;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, into: &mut Vec<u8>) -> Option<Keys> {
        let flight = self.flights.pop_front()?;
        into.extend_from_slice(&flight.messages);
        flight.next.map(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(packet_keys(Level::Updated))
    }

    fn is_valid_retry(&self, _original: ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl ClientConfig for Client {
    fn start_session(
        &self,
        _version: u32,
        _server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(NullSession::new(Side::Client, 0, parameters)))
    }
}

impl ServerConfig for Server {
    fn initial_keys(
        &self,
        _version: u32,
        _connection_id: ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(Level::Initial))
    }

    fn retry_tag(&self, _version: u32, _original: ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _version: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        let chain = self.certificate_chain_bytes;
        Box::new(NullSession::new(Side::Server, chain, parameters))
    }
}
