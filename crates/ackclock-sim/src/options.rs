//! TCP options: their bytes in a header, and the SACK blocks.

use ackclock_core::Time;
use ackclock_plan::{TcpPlan, TIMESTAMPS_BYTES};

/// Largest number of SACK blocks in an ACK, without timestamps (RFC 2018 section 3).
pub const MAX_BLOCKS: usize = 4;

/// The tick of the timestamps' clock (RFC 7323 section 5.4).
pub const TIMESTAMP_TICK: Time = Time::from_milliseconds(1);

/// Value of the timestamp clock.
pub fn timestamp(time: Time) -> u64 {
    time.picoseconds() / TIMESTAMP_TICK.picoseconds()
}

/// Bytes of the headers of a SYN or SYN/ACK. Its options: MSS and window scale (4 bytes each), timestamps with SACK
/// permitted (12, in which the latter takes the place of padding), or SACK permitted alone (4).
pub fn syn_header_bytes(tcp: &TcpPlan) -> u32 {
    tcp.header_bytes
        + match (tcp.timestamps, tcp.sack) {
            (true, _) => 8 + TIMESTAMPS_BYTES,
            (false, true) => 12,
            (false, false) => 8,
        }
}

/// SACK blocks that fit an ACK: one less with timestamps (RFC 2018 section 3).
pub fn max_blocks(tcp: &TcpPlan) -> usize {
    MAX_BLOCKS - usize::from(tcp.timestamps)
}

/// A half-open range of segments, `start..end`.
pub type Block = (u64, u64);

/// The SACK blocks of an ACK, the most recent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// After the last block come empty ones.
    blocks: [Block; MAX_BLOCKS],
}

impl Blocks {
    /// The blocks, the most recent first.
    pub fn as_slice(&self) -> &[Block] {
        let is_block = |(start, end): &&Block| start < end;
        let count = self.blocks.iter().take_while(is_block).count();
        &self.blocks[..count]
    }

    /// True if there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let (start, end) = self.blocks[0];
        start >= end
    }

    /// Bytes of the SACK option: 4 with padding, and 8 for each block.
    pub fn option_bytes(&self) -> u32 {
        4 + 8 * self.as_slice().len() as u32
    }
}

impl FromIterator<Block> for Blocks {
    /// The first [`MAX_BLOCKS`] of them.
    fn from_iter<T: IntoIterator<Item = Block>>(blocks: T) -> Blocks {
        let mut chosen = Blocks::default();
        for (place, block) in chosen.blocks.iter_mut().zip(blocks) {
            *place = block;
        }
        chosen
    }
}
