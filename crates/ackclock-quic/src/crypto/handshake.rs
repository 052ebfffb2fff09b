//! Messages of the handshake by size (RFC 8446 section 4).

/// Bytes of a message's header: its type and its length.
const HEADER_BYTES: usize = 4;

/// Kind of a message, by its code in TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Section 4.1.2.
    ClientHello = 1,
    /// Section 4.1.3.
    ServerHello = 2,
    /// Section 4.3.1.
    EncryptedExtensions = 8,
    /// Section 4.4.2.
    Certificate = 11,
    /// Section 4.4.3.
    CertificateVerify = 15,
    /// Section 4.4.4.
    Finished = 20,
}

impl Kind {
    const ALL: [Kind; 6] = [
        Kind::ClientHello,
        Kind::ServerHello,
        Kind::EncryptedExtensions,
        Kind::Certificate,
        Kind::CertificateVerify,
        Kind::Finished,
    ];

    /// Bytes behind the header, without transport parameters and certificates.
    pub const fn fixed_bytes(self) -> usize {
        match self {
            // Version, random, session ID, three cipher suites, compression, length of the extensions (51 - 4);
            // server_name (20), supported_groups (12), signature_algorithms (22), ALPN (9), supported_versions (7),
            // psk_key_exchange_modes (6), key_share (42), header of the transport parameters (4).
            Kind::ClientHello => 47 + 20 + 12 + 22 + 9 + 7 + 6 + 42 + 4,
            // Version, random, session ID, cipher suite, compression, length of the extensions; supported_versions,
            // key_share.
            Kind::ServerHello => 2 + 32 + 1 + 2 + 1 + 2 + 6 + 40,
            // Length of the extensions, ALPN, header of the transport parameters.
            Kind::EncryptedExtensions => 2 + 9 + 4,
            // Context, length of the list; of one entry its length and that of its extensions.
            Kind::Certificate => 1 + 3 + 3 + 2,
            // Algorithm, length, a signature of 71 bytes in DER.
            Kind::CertificateVerify => 2 + 2 + 71,
            // A hash of SHA-256.
            Kind::Finished => 32,
        }
    }
}

/// Append a message: its header, zeros, and at its end `content`.
pub fn write(kind: Kind, zeros: usize, content: &[u8], into: &mut Vec<u8>) {
    let length = (kind.fixed_bytes() + zeros + content.len()) as u32;
    into.push(kind as u8);
    into.extend_from_slice(&length.to_be_bytes()[1..]);
    into.resize(into.len() + kind.fixed_bytes() + zeros, 0);
    into.extend_from_slice(content);
}

/// Take the first message from bytes that have arrived; none if it is not complete. An unknown kind is `Err`.
pub fn take(arrived: &mut Vec<u8>) -> Result<Option<(Kind, Vec<u8>)>, u8> {
    if arrived.len() < HEADER_BYTES {
        return Ok(None);
    }
    let length = u32::from_be_bytes([0, arrived[1], arrived[2], arrived[3]]) as usize;
    if arrived.len() < HEADER_BYTES + length {
        return Ok(None);
    }
    let known = Kind::ALL.into_iter().find(|&kind| kind as u8 == arrived[0]);
    let kind = known.ok_or(arrived[0])?;
    let rest = arrived.split_off(HEADER_BYTES + length);
    let message = std::mem::replace(arrived, rest);
    Ok(Some((kind, message[HEADER_BYTES..].to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8448 section 3: its ServerHello is 90 bytes, its CertificateVerify and Finished with their headers 136 (a
    /// signature of 128 bytes) and 36, its Certificate 445 with a certificate of 432.
    #[test]
    fn messages_have_the_lengths_of_the_example_handshake() {
        let bytes = |kind, zeros| {
            let mut message = Vec::new();
            write(kind, zeros, &[], &mut message);
            message.len()
        };
        assert_eq!(bytes(Kind::ServerHello, 0), 90);
        assert_eq!(bytes(Kind::CertificateVerify, 128 - 71), 136);
        assert_eq!(bytes(Kind::Finished, 0), 36);
        assert_eq!(bytes(Kind::Certificate, 432), 445);
    }

    #[test]
    fn messages_arrive_in_pieces() {
        let mut sent = Vec::new();
        write(Kind::EncryptedExtensions, 0, &[1, 2, 3], &mut sent);
        write(Kind::Finished, 0, &[], &mut sent);
        let mut arrived = sent[..10].to_vec();
        assert_eq!(take(&mut arrived), Ok(None));
        arrived.extend_from_slice(&sent[10..]);
        let (kind, body) = take(&mut arrived).expect("known").expect("complete");
        assert_eq!(kind, Kind::EncryptedExtensions);
        assert_eq!(body[kind.fixed_bytes()..], [1, 2, 3]);
        assert!(matches!(take(&mut arrived), Ok(Some((Kind::Finished, _)))));
        assert_eq!(take(&mut arrived), Ok(None));
        assert_eq!(take(&mut vec![99, 0, 0, 0]), Err(99));
    }
}
