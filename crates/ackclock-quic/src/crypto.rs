//! Null cryptography: the sizes of TLS 1.3 in QUIC (RFC 8446, RFC 9001), and none of its secrets.
//!
//! ```text
//!   client                                   server
//!   ClientHello ──────── Initial ──────────▶
//!               ◀─────── Initial ──────────  ServerHello
//!               ◀────── Handshake ─────────  EncryptedExtensions, Certificate, CertificateVerify, Finished
//!   Finished ─────────── Handshake ────────▶
//! ```
//!
//! A message has TLS's header of 4 bytes and the length that it has with X25519, TLS_AES_128_GCM_SHA256, an ECDSA
//! signature with P-256, and a certificate chain of a given size; its content is the transport parameters, and zeros.
//! A protected packet is its plaintext and a tag of 16 bytes that names the level of protection.
//!
//! Deviations: no 0-RTT, no session tickets, no Retry, no update of keys. A certificate chain is not compressed.

mod handshake;
mod keys;
mod session;

pub use keys::{ResetKey, TokenKey};
pub use session::{Client, Server};
