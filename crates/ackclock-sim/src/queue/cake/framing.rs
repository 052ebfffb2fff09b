//! Bytes for which a packet counts: overhead, minimum, cells of ATM, codewords of PTM (tc-cake(8), "Overhead
//! compensation parameters").

use serde::Deserialize;

/// Payload of a cell of ATM, and its size on the wire.
const CELL_PAYLOAD_BYTES: u64 = 48;
const CELL_BYTES: u64 = 53;
/// Bytes after which PTM inserts one (64b/65b).
const CODEWORD_BYTES: u64 = 64;

/// Cells or codewords of the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkLayer {
    /// Neither.
    Noatm,
    /// Cells of 53 bytes.
    Atm,
    /// 65 bytes for 64.
    Ptm,
}

/// Rule by which a packet's bytes are counted.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    pub link_layer: LinkLayer,
    /// Bytes beyond the IP packet; `None`: those of the link.
    pub overhead: Option<i32>,
    /// The least that a packet counts, before cells.
    pub mpu: u32,
    /// Bytes beyond the IP packet in wire bytes.
    pub frame_bytes: u32,
}

impl Framing {
    /// Bytes for which a packet of these wire bytes counts.
    pub fn bytes(&self, wire_bytes: u32) -> u64 {
        let packet_bytes = i64::from(wire_bytes) - i64::from(self.frame_bytes);
        let framed = packet_bytes + self.overhead.map_or(i64::from(self.frame_bytes), i64::from);
        let bytes = framed.max(i64::from(self.mpu)).max(0).unsigned_abs();
        match self.link_layer {
            LinkLayer::Noatm => bytes,
            LinkLayer::Atm => bytes.div_ceil(CELL_PAYLOAD_BYTES) * CELL_BYTES,
            LinkLayer::Ptm => bytes + bytes.div_ceil(CODEWORD_BYTES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: Framing = Framing {
        link_layer: LinkLayer::Noatm,
        overhead: None,
        mpu: 0,
        frame_bytes: 14,
    };

    #[test]
    fn without_keywords_a_packet_counts_its_wire_bytes() {
        assert_eq!(RAW.bytes(1514), 1514);
    }

    /// `docsis` is overhead 18, mpu 64; `pppoe-ptm` overhead 30; `conservative` overhead 48 and cells: of the same IP
    /// packets of 1500 and 40 bytes.
    #[test]
    fn keywords_of_the_manual() {
        let framing = |overhead, mpu, link_layer| Framing {
            link_layer,
            overhead: Some(overhead),
            mpu,
            ..RAW
        };
        let docsis = framing(18, 64, LinkLayer::Noatm);
        assert_eq!([docsis.bytes(1514), docsis.bytes(54)], [1518, 64]);
        // 1530 bytes are 24 codewords, the last of which is not full.
        assert_eq!(framing(30, 0, LinkLayer::Ptm).bytes(1514), 1530 + 24);
        // 1548 bytes fill 32 cells and a quarter of one; 88 fill one, and a part of a second.
        let conservative = framing(48, 0, LinkLayer::Atm);
        assert_eq!(
            [conservative.bytes(1514), conservative.bytes(54)],
            [33 * 53, 2 * 53]
        );
        assert_eq!(framing(-14, 0, LinkLayer::Noatm).bytes(14), 0);
    }
}
