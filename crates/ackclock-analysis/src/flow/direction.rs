//! One direction of a connection: what its headers say, whether it carries data or not.

use super::ecn_feedback::EcnFeedback;
use super::path_change::HopCount;
use super::rate_limit::MAX_SHIFT;
use super::sender_view::ip_id::IpIdCounter;
use super::sender_view::{SenderView, MAX_OPTION_BYTES};
use super::zero_window::ZeroWindows;
use ackclock_core::tcp::seq;
use ackclock_pcap::packet::{Checksum, Flags, Segment};

/// The origin of positions, above 0 so that bytes before the first packet have one too.
const ORIGIN: u64 = 1 << 33;
/// The most that Ethernet carries: segments whose limit nobody said are not taken to be larger.
const DEFAULT_MSS: u32 = 1460;
/// Packets after which the largest payload is taken for the segments' size.
const MIN_PACKETS: u32 = 8;
/// No sender makes smaller segments (Linux's tcp_min_snd_mss).
const MIN_MSS: u32 = 48;
/// The bytes of the option timestamps, padded.
const TIMESTAMPS_BYTES: u32 = 12;

/// A sequence number as a position, near another position.
#[inline]
pub fn unwrap_near(position: u64, number: u32) -> u64 {
    let ahead = seq::distance(number, position as u32);
    position.saturating_add_signed(i64::from(ahead))
}

/// The state of one direction.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // what a SYN says are yes and no
pub struct Direction {
    /// The initial sequence number, if its SYN was seen.
    pub initial: Option<u32>,
    /// The position of its first byte of data; before any was captured, the first that was acknowledged.
    pub first: Option<u64>,
    /// The lowest position of its captured data.
    lowest: Option<u64>,
    /// The position after the last byte that was seen.
    pub next: u64,
    /// The position of its FIN.
    pub fin: Option<u64>,
    /// The highest position that the other end acknowledged before any data of it was captured, 0 if none; the lowest is
    /// [`Self::first`].
    acknowledged: u64,
    /// The last of these acknowledgements, if it was too far ahead.
    jump: Option<u64>,
    /// The largest window of these acknowledgements, scaled by the most there is.
    window_bytes: u64,
    pub packets: u64,
    pub packet_bytes: u64,
    pub syn_retransmissions: u32,
    /// The largest segment that it takes, as its SYN says.
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    /// Not all options of its SYN were captured.
    pub is_syn_cut: bool,
    /// Not all options of some packet were captured: SACK blocks may be missing.
    pub is_cut: bool,
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    /// Packets by their ECN field (RFC 3168): not-ECT, ECT(1), ECT(0), CE.
    pub ecn_packets: [u32; 4],
    /// The feedback of its headers about marks of the other direction.
    pub ecn_feedback: EcnFeedback,
    pub hops: HopCount,
    /// Windows of zero that it advertised.
    pub zero_windows: ZeroWindows,
    pub offloaded: bool,
    pub size: Size,
    /// TSval and time of the first packet and of the last.
    pub tsval_span: Option<[(u32, i64); 2]>,
    /// The IP identification counter.
    pub ip_id: IpIdCounter,
    /// The sender's view of the data, once there is any.
    pub sender_view: Option<Box<SenderView>>,
    /// Memory for that, of a connection that is over.
    pub spare: Option<Box<SenderView>>,
}

impl Direction {
    /// Count a packet.
    #[inline]
    pub fn count(&mut self, segment: &Segment, now_ns: i64) {
        self.packets += 1;
        self.packet_bytes += u64::from(segment.packet_bytes);
        self.ecn_packets[usize::from(segment.ecn & 3)] += 1;
        if !segment.flags.has(Flags::SYN | Flags::RST) {
            self.hops.on_packet(segment.hops);
        }
        self.zero_windows.on_packet(segment, now_ns);
        self.is_cut |= segment.options.cut;
        self.offloaded |= segment.checksum == Checksum::Offloaded;
        if let Some((tsval, _)) = segment.options.timestamps {
            self.timestamps = true;
            let now = (tsval, now_ns);
            self.tsval_span.get_or_insert([now, now])[1] = now;
        }
        if segment.options.sack_blocks > 0 {
            self.sack = true;
        }
        if segment.payload_bytes == 0 {
            self.ip_id.count(segment.identification);
        }
    }

    /// Take an acknowledgement of it while none of its data was captured. It counts if it is not below the highest one,
    /// nor further ahead than the largest window that it can have been in. One that is beyond counts as soon as the next
    /// goes on from it: numbers that do not belong together, as in a scan of ports, are not a stream.
    #[inline]
    pub fn on_unseen_ack(&mut self, segment: &Segment) {
        let number = segment.acknowledgement;
        let window_bytes = u64::from(segment.window) << MAX_SHIFT;
        self.window_bytes = self.window_bytes.max(window_bytes);
        let position = match self.acknowledged {
            0 => self.unwrap(number),
            highest => unwrap_near(highest, number),
        };
        self.first.get_or_insert(position);
        let follows = |before: u64| position.wrapping_sub(before) <= self.window_bytes;
        let jump = self.jump.take();
        if self.acknowledged == 0
            || follows(self.acknowledged)
            || jump.is_some_and(|before| position > before && follows(before))
        {
            self.acknowledged = position;
        } else if position > self.acknowledged {
            self.jump = Some(position);
        }
    }

    /// Return the bytes that it sent while none of them was captured, as its FIN and the other end's acknowledgements
    /// show; None if they show none.
    pub fn acknowledged_bytes(&self) -> Option<u64> {
        let begin = self.first?;
        let end = match (self.fin, self.acknowledged) {
            (Some(fin), 0) => fin,
            (Some(fin), highest) => unwrap_near(highest, fin as u32),
            (None, highest) => highest,
        };
        // One more may be its FIN.
        Some(end.saturating_sub(begin)).filter(|&bytes| bytes > 1)
    }

    /// Return true if no packet of it was captured, though the other end acknowledged some.
    pub fn is_absent(&self) -> bool {
        self.packets == 0 && self.acknowledged > 0
    }

    /// Return true if its packets have an ECN codepoint other than not-ECT.
    pub fn is_ect(&self) -> bool {
        self.ecn_packets[1..].iter().any(|&packets| packets > 0)
    }

    /// Return true if its packets carry ECT(1), but for those that were marked or are not ECN-capable.
    pub fn is_l4s(&self) -> bool {
        let [_, ect1, ect0, _] = self.ecn_packets;
        ect1 > ect0
    }

    /// Its SYN.
    pub fn open(&mut self, segment: &Segment) {
        self.initial = Some(segment.sequence);
        let first = ORIGIN | u64::from(segment.sequence.wrapping_add(1));
        self.first = Some(first);
        self.next = first;
        self.mss = segment.options.mss;
        self.window_scale = segment
            .options
            .window_scale
            .map(|shift| shift.min(MAX_SHIFT));
        self.is_syn_cut = segment.options.cut;
        self.sack = segment.options.sack_permitted;
        self.ecn = segment.ecn != 0 || segment.flags.has(Flags::ACE);
    }

    /// Forget the data of its SYN.
    pub fn forget_data(&mut self) {
        self.spare = self.sender_view.take();
        self.next = self.first.unwrap_or(self.next);
        self.lowest = None;
    }

    /// Return the bytes before the lowest that was captured, 0 without data.
    pub fn unseen_head_bytes(&self) -> u64 {
        let both = self.lowest.zip(self.first);
        both.map_or(0, |(lowest, first)| lowest.saturating_sub(first))
    }

    /// The position of a number that belongs to this direction.
    #[inline]
    pub fn unwrap(&self, number: u32) -> u64 {
        if self.next == 0 {
            return ORIGIN | u64::from(number);
        }
        unwrap_near(self.next, number)
    }

    /// The position of a segment's first byte of data.
    #[inline]
    pub fn position_of(&mut self, segment: &Segment) -> u64 {
        let syn = segment.flags.has(Flags::SYN);
        let number = segment.sequence.wrapping_add(u32::from(syn));
        let start = self.unwrap(number);
        if self.next == 0 {
            self.next = start;
            self.first = Some(start);
        }
        self.lowest = Some(self.lowest.map_or(start, |lowest| lowest.min(start)));
        start
    }
}

/// The size of a direction's segments: what its receiver takes, or what it is seen to send.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    limit: Option<u32>,
    largest: u32,
    packets: u32,
}

impl Size {
    /// The receiver's limit, or Ethernet's if it is unknown, less the options that every segment has.
    pub fn limit(&mut self, mss: Option<u16>, timestamps: bool) {
        let most = mss.filter(|&mss| mss > 0).map_or(DEFAULT_MSS, u32::from);
        let options = if timestamps { TIMESTAMPS_BYTES } else { 0 };
        self.limit = Some(most.max(MIN_MSS).saturating_sub(options));
    }

    /// A segment's payload.
    #[inline]
    pub fn take(&mut self, bytes: u32) {
        self.packets = self.packets.saturating_add(1);
        let limit = self.limit.unwrap_or(DEFAULT_MSS);
        if bytes > self.largest && bytes <= limit {
            self.largest = bytes;
        } else if bytes > limit + MAX_OPTION_BYTES && !self.is_multiple(bytes, limit) {
            self.largest = limit;
        }
    }

    /// Offloads merge full segments: so many bytes are some of those that were seen, which the path makes smaller than
    /// the receiver's limit.
    fn is_multiple(&self, bytes: u32, limit: u32) -> bool {
        2 * self.largest > limit && bytes.is_multiple_of(self.largest)
    }

    /// Return true if data of the direction were captured.
    pub fn has_data(&self) -> bool {
        self.packets > 0
    }

    /// The largest segment that the receiver takes, or Ethernet carries.
    pub fn limit_bytes(&self) -> u32 {
        self.limit.unwrap_or(DEFAULT_MSS)
    }

    /// The size.
    #[inline]
    pub fn mss(&self) -> u32 {
        match self.limit {
            Some(limit) if self.packets < MIN_PACKETS || self.largest == 0 => limit,
            _ if self.largest == 0 => DEFAULT_MSS,
            _ => self.largest,
        }
    }
}
