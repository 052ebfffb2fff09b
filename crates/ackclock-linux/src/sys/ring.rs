//! A packet socket whose frames come through shared memory (packet(7), `PACKET_RX_RING`, version 2).
//!
//! The kernel fills the slots in their order and this process empties them; no system call is made for a frame. The
//! numbers are those of include/uapi/linux/if_packet.h.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{outcome, set_option};

const SOL_PACKET: i32 = 263;
const PACKET_RX_RING: i32 = 5;
const PACKET_STATISTICS: i32 = 6;
const PACKET_VERSION: i32 = 10;
const TPACKET_V2: i32 = 1;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;
const PACKET_OUTGOING: u8 = 4;

/// A slot's room: about 66 bytes of its headers, and the beginning of a frame.
const SLOT_BYTES: usize = 256;
/// The size of a block of the ring: a whole number of pages on every architecture.
pub const BLOCK_BYTES: usize = 64 << 10;

/// Offsets of the fields of `struct tpacket2_hdr`, and of the `struct sockaddr_ll` behind it.
mod field {
    pub const STATUS: usize = 0;
    pub const LENGTH: usize = 4;
    pub const KEPT: usize = 8;
    pub const FRAME: usize = 12;
    pub const SECONDS: usize = 16;
    pub const NANOSECONDS: usize = 20;
    pub const DIRECTION: usize = 32 + 10;
}

/// A frame in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// By the real-time clock.
    pub real_ns: u64,
    /// True if this host sends it.
    pub is_outgoing: bool,
    /// Its length, bytes.
    pub length: u32,
    /// Its beginning.
    pub bytes: &'a [u8],
}

/// The frames of all devices of a network namespace, both ways.
#[derive(Debug)]
pub struct Ring {
    socket: OwnedFd,
    memory: NonNull<u8>,
    slots: usize,
    next: usize,
    lost: u64,
}

impl Ring {
    /// Open a ring of so many blocks in the thread's namespace.
    ///
    /// # Errors
    /// The kernel has no packet sockets, or not for this user, or no memory.
    pub fn open(blocks: usize) -> io::Result<Ring> {
        // SAFETY: the call takes numbers and touches no memory.
        let socket =
            outcome(
                unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) }
                    as isize,
            )?;
        // SAFETY: the descriptor is new and owned here alone.
        let socket = unsafe { OwnedFd::from_raw_fd(socket as i32) };
        set_option(socket.as_fd(), SOL_PACKET, PACKET_VERSION, TPACKET_V2)?;
        let slots = blocks * (BLOCK_BYTES / SLOT_BYTES);
        let request = [BLOCK_BYTES, blocks, SLOT_BYTES, slots].map(|value| value as u32);
        // SAFETY: the kernel reads `struct tpacket_req`, four words, from `request`, which outlives the call.
        let code = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                SOL_PACKET,
                PACKET_RX_RING,
                request.as_ptr().cast(),
                size_of_val(&request) as libc::socklen_t,
            )
        };
        outcome(code as isize)?;
        let memory = map(&socket, blocks * BLOCK_BYTES)?;
        let ring = Ring {
            socket,
            memory,
            slots,
            next: 0,
            lost: 0,
        };
        ring.listen()?;
        Ok(ring)
    }

    /// Have the frames of all protocols and devices come in.
    fn listen(&self) -> io::Result<()> {
        // SAFETY: all fields of the address are numbers, for which zeros are values.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: the kernel reads the address, which outlives the call, and not beyond its length.
        let code = unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        outcome(code as isize).map(drop)
    }

    /// Hand over the frames that have come, in their order, and return their slots.
    pub fn take(&mut self, mut with: impl FnMut(Frame)) {
        loop {
            // SAFETY: the slot is inside the mapping, which lives as long as `self`, and begins at a multiple of its
            // size. The status is the one word that both sides write; the kernel does so atomically.
            let (slot, status) = unsafe {
                let start = self.memory.as_ptr().add(self.next * SLOT_BYTES);
                (start, AtomicU32::from_ptr(start.add(field::STATUS).cast()))
            };
            if status.load(Ordering::Acquire) & TP_STATUS_USER == 0 {
                return;
            }
            // SAFETY: a slot with this status is ours until we give it back, and the kernel does not write to it.
            with(parse(unsafe {
                std::slice::from_raw_parts(slot, SLOT_BYTES)
            }));
            status.store(TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.slots;
        }
    }

    /// Frames that found no slot, in all.
    pub fn lost(&mut self) -> io::Result<u64> {
        // `struct tpacket_stats`: frames and, of them, those that were lost, since the last call.
        let mut counts = [0_u32; 2];
        let mut length = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `counts`, which has as many.
        let code = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                SOL_PACKET,
                PACKET_STATISTICS,
                counts.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        outcome(code as isize)?;
        self.lost += u64::from(counts[1]);
        Ok(self.lost)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and of this length, and no slice of it outlives a call of `take`.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.slots * SLOT_BYTES) };
    }
}

fn map(socket: &OwnedFd, bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice overlays nothing.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            socket.as_raw_fd(),
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(memory.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// The frame in a slot.
fn parse(slot: &[u8]) -> Frame<'_> {
    let half = |at: usize| u16::from_ne_bytes([slot[at], slot[at + 1]]);
    let word = |at: usize| u32::from_ne_bytes([slot[at], slot[at + 1], slot[at + 2], slot[at + 3]]);
    let start = usize::from(half(field::FRAME)).min(slot.len());
    let end = (start + word(field::KEPT) as usize).min(slot.len());
    Frame {
        real_ns: u64::from(word(field::SECONDS)) * 1_000_000_000
            + u64::from(word(field::NANOSECONDS)),
        is_outgoing: slot[field::DIRECTION] == PACKET_OUTGOING,
        length: word(field::LENGTH),
        bytes: &slot[start..end],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slot_holds_a_frame_and_its_metadata() {
        let mut slot = [0; SLOT_BYTES];
        slot[field::LENGTH..][..4].copy_from_slice(&1514_u32.to_ne_bytes());
        slot[field::KEPT..][..4].copy_from_slice(&3_u32.to_ne_bytes());
        slot[field::FRAME..][..2].copy_from_slice(&66_u16.to_ne_bytes());
        slot[field::SECONDS..][..4].copy_from_slice(&2_u32.to_ne_bytes());
        slot[field::NANOSECONDS..][..4].copy_from_slice(&5_u32.to_ne_bytes());
        slot[field::DIRECTION] = PACKET_OUTGOING;
        slot[66..69].copy_from_slice(b"abc");
        let frame = parse(&slot);
        assert_eq!(
            (frame.real_ns, frame.is_outgoing, frame.length, frame.bytes),
            (2_000_000_005, true, 1514, &b"abc"[..])
        );
    }

    proptest! {
        #[test]
        fn slots_are_bounds_checked(slot in prop::collection::vec(any::<u8>(), SLOT_BYTES)) {
            prop_assert!(parse(&slot).bytes.len() <= SLOT_BYTES);
        }
    }
}
