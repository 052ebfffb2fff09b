//! Null cryptography: a handshake of the flights of TLS 1.3 by their sizes, and a constant tag in place of encryption.
//!
//! ```text
//!   HELLO     (Initial)    client ─▶ server   transport parameters
//!   REPLY     (Initial)    server ─▶ client
//!   IDENTITY  (Handshake)  server ─▶ client   transport parameters, zeros for certificates and signature
//!   FINISHED  (Handshake)  client ─▶ server
//! ```

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// Zeros of each message: what its flight has in TLS 1.3 besides the transport parameters, with a certificate chain of
/// some 2000 bytes (RFC 8446; RFC 8448 has an example).
const ZEROS: [usize; 4] = [200, 86, 2200, 32];
const HELLO: u8 = 0;
const REPLY: u8 = 1;
const IDENTITY: u8 = 2;
const FINISHED: u8 = 3;

/// TLS alert (RFC 8446 section 6).
const UNEXPECTED_MESSAGE: u8 = 10;

/// Bytes in place of the authentication tag of a packet (RFC 9001 section 5.3).
const TAG: [u8; 16] = *b"null protection!";

/// Keys of all kinds.
pub struct Null;

impl HeaderKey for Null {
    fn decrypt(&self, _offset: usize, _packet: &mut [u8]) {}
    fn encrypt(&self, _offset: usize, _packet: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        TAG.len()
    }
}

impl PacketKey for Null {
    fn encrypt(&self, _number: u64, packet: &mut [u8], _header_bytes: usize) {
        let end = packet.len();
        packet[end - TAG.len()..].copy_from_slice(&TAG);
    }

    fn decrypt(
        &self,
        _number: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let length = payload.strip_suffix(&TAG).ok_or(CryptoError)?.len();
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG.len()
    }
    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }
    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Stateless resets: different tokens for different connection IDs.
impl HmacKey for Null {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        signature.fill(0);
        data.iter()
            .enumerate()
            .for_each(|(place, byte)| signature[place % 16] ^= byte);
    }
    fn signature_len(&self) -> usize {
        32
    }
    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = [0; 32];
        self.sign(data, &mut expected);
        (expected == signature).then_some(()).ok_or(CryptoError)
    }
}

/// Address validation: no token is sent.
impl HandshakeTokenKey for Null {
    fn aead_from_hkdf(&self, _random: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Null)
    }
}

impl AeadKey for Null {
    fn seal(&self, _data: &mut Vec<u8>, _additional: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }
    fn open<'a>(
        &self,
        _data: &'a mut [u8],
        _additional: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}

fn keys() -> Keys {
    let header = KeyPair {
        local: Box::new(Null) as Box<dyn HeaderKey>,
        remote: Box::new(Null) as _,
    };
    Keys {
        header,
        packet: packet_keys(),
    }
}

fn packet_keys() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair {
        local: Box::new(Null),
        remote: Box::new(Null),
    }
}

/// The handshake of one end.
struct Handshake {
    side: Side,
    own: TransportParameters,
    peer: Option<TransportParameters>,
    /// Bytes of a message that is not complete.
    arrived: Vec<u8>,
    /// The message that comes next; none when the handshake is complete.
    expected: Option<u8>,
    /// Messages to send; `true` if keys of the next level follow.
    flights: VecDeque<(Vec<u8>, bool)>,
}

impl Handshake {
    fn new(side: Side, own: &TransportParameters) -> Box<dyn Session> {
        let mut made = Handshake {
            side,
            own: *own,
            peer: None,
            arrived: Vec::new(),
            expected: Some(HELLO),
            flights: VecDeque::new(),
        };
        if side.is_client() {
            made.expected = Some(REPLY);
            made.send(HELLO, false);
        }
        Box::new(made)
    }

    /// A message: its kind, the length of the rest, zeros, and the transport parameters if it carries them.
    fn send(&mut self, kind: u8, keys_follow: bool) {
        let mut rest = vec![0; ZEROS[usize::from(kind)]];
        if matches!(kind, HELLO | IDENTITY) {
            self.own.write(&mut rest);
        }
        let mut message = (rest.len() as u32).to_be_bytes().to_vec();
        message[0] = kind;
        message.append(&mut rest);
        self.flights.push_back((message, keys_follow));
    }

    fn on_message(&mut self, kind: u8, rest: &[u8]) -> Result<(), TransportError> {
        if self.expected != Some(kind) || rest.len() < ZEROS[usize::from(kind)] {
            return Err(TransportErrorCode::crypto(UNEXPECTED_MESSAGE).into());
        }
        if matches!(kind, HELLO | IDENTITY) {
            self.peer = Some(TransportParameters::read(
                self.side,
                &mut &rest[ZEROS[usize::from(kind)]..],
            )?);
        }
        self.expected = match kind {
            HELLO => {
                self.send(REPLY, true);
                self.send(IDENTITY, true);
                Some(FINISHED)
            }
            REPLY => {
                self.flights.push_back((Vec::new(), true));
                Some(IDENTITY)
            }
            IDENTITY => {
                self.send(FINISHED, true);
                None
            }
            _ => None,
        };
        Ok(())
    }
}

impl Session for Handshake {
    fn initial_keys(&self, _connection_id: &ConnectionId, _side: Side) -> Keys {
        keys()
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
        while let [kind, a, b, c, ..] = self.arrived[..] {
            let end = 4 + u32::from_be_bytes([0, a, b, c]) as usize;
            if self.arrived.len() < end {
                break;
            }
            let rest = self.arrived.split_off(end);
            let message = std::mem::replace(&mut self.arrived, rest);
            self.on_message(kind, &message[4..])?;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, into: &mut Vec<u8>) -> Option<Keys> {
        let (message, keys_follow) = self.flights.pop_front()?;
        into.extend_from_slice(&message);
        keys_follow.then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(packet_keys())
    }
    fn is_valid_retry(&self, _original: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }
    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl ClientConfig for Null {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Handshake::new(Side::Client, parameters))
    }
}

impl ServerConfig for Null {
    fn initial_keys(
        &self,
        _version: u32,
        _connection_id: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }
    fn retry_tag(&self, _version: u32, _original: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        Handshake::new(Side::Server, parameters)
    }
}
