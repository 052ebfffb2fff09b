//! Keys that protect nothing: tags and masks of the right lengths.

use bytes::BytesMut;
use noq_proto::crypto::{
    CryptoError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair, Keys, PacketKey,
};
use noq_proto::PathId;

/// Bytes of an authentication tag, and of the sample for header protection (RFC 9001 sections 5.3 and 5.4.2).
const TAG_BYTES: usize = 16;

/// Level of protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Initial packets.
    Initial = 1,
    /// Handshake packets.
    Handshake = 2,
    /// 1-RTT packets.
    OneRtt = 3,
    /// 1-RTT packets after an update of keys, which is never made.
    Updated = 4,
}

/// Keys of a level, both ways.
pub fn keys(level: Level) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(NullHeaderKey),
            remote: Box::new(NullHeaderKey),
        },
        packet: packet_keys(level),
    }
}

/// Keys of a level for packets alone.
pub fn packet_keys(level: Level) -> KeyPair<Box<dyn PacketKey>> {
    KeyPair {
        local: Box::new(NullPacketKey(level)),
        remote: Box::new(NullPacketKey(level)),
    }
}

struct NullHeaderKey;

impl HeaderKey for NullHeaderKey {
    fn decrypt(&self, _offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG_BYTES
    }
}

struct NullPacketKey(Level);

impl NullPacketKey {
    fn tag(&self) -> [u8; TAG_BYTES] {
        [self.0 as u8; TAG_BYTES]
    }
}

impl PacketKey for NullPacketKey {
    fn encrypt(&self, _path: PathId, _number: u64, packet: &mut [u8], _header_bytes: usize) {
        let end = packet.len();
        packet[end - TAG_BYTES..].copy_from_slice(&self.tag());
    }

    fn decrypt(
        &self,
        _path: PathId,
        _number: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        if payload[length..] != self.tag() {
            return Err(CryptoError);
        }
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Key of the tokens for stateless resets: different tokens for different connection IDs.
pub struct ResetKey;

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        signature.fill(0);
        if let Some(length) = signature.len().checked_sub(1) {
            for (place, byte) in data.iter().enumerate() {
                signature[place % (length + 1)] ^= byte;
            }
            signature[length] ^= data.len() as u8;
        }
    }

    fn signature_len(&self) -> usize {
        2 * TAG_BYTES
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; self.signature_len()];
        self.sign(data, &mut expected);
        if expected == signature {
            Ok(())
        } else {
            Err(CryptoError)
        }
    }
}

/// Key of address validation tokens, of which none is sent.
pub struct TokenKey;

impl HandshakeTokenKey for TokenKey {
    fn seal(&self, _nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        data.resize(data.len() + TAG_BYTES, 0);
        Ok(())
    }

    fn open<'a>(&self, _nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let length = data.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        Ok(&data[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_opens_at_its_own_level_only() {
        let mut packet = vec![7; 40];
        packet.resize(40 + TAG_BYTES, 0);
        let path = PathId::ZERO;
        keys(Level::Handshake)
            .packet
            .local
            .encrypt(path, 0, &mut packet, 8);
        let open = |level: Level| {
            let mut payload = BytesMut::from(&packet[8..]);
            let key = keys(level).packet.remote;
            key.decrypt(path, 0, &packet[..8], &mut payload)
                .map(|()| payload.len())
        };
        assert_eq!(open(Level::Handshake).ok(), Some(32));
        assert!(open(Level::Initial).is_err() && open(Level::OneRtt).is_err());
    }

    #[test]
    fn reset_tokens_of_different_connection_ids_differ() {
        let sign = |data: &[u8]| {
            let mut signature = [0; 32];
            ResetKey.sign(data, &mut signature);
            signature
        };
        assert_ne!(sign(&[1, 2, 3]), sign(&[1, 2, 4]));
        assert!(ResetKey.verify(&[1, 2, 3], &sign(&[1, 2, 3])).is_ok());
        assert!(ResetKey.verify(&[1, 2, 4], &sign(&[1, 2, 3])).is_err());
    }
}
