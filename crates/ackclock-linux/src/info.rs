//! `TCP_INFO`: the kernel's statistics of a connection.

/// State of a connection, as the kernel numbers them: its SYN is not answered.
pub const SYN_SENT: u8 = 2;
/// Its SYN/ACK is not answered.
pub const SYN_RECEIVED: u8 = 3;
/// Its FIN is acknowledged.
pub const FIN_WAIT2: u8 = 5;
/// Both ends have sent their FIN.
pub const TIME_WAIT: u8 = 6;
/// It is over.
pub const CLOSED: u8 = 7;

/// The congestion state from which on a window is reduced: CWR, recovery, loss.
pub const RECOVERY: u8 = 3;
/// The congestion state after a retransmission timeout (`TCP_CA_Loss`).
pub const LOSS: u8 = 4;

/// A slow start threshold that is none.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The fields read from `struct tcp_info` (include/uapi/linux/tcp.h); fields that a kernel lacks are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Info {
    pub state: u8,
    pub congestion_state: u8,
    /// Timeouts since data were last acknowledged.
    pub retransmits: u8,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retransmitted: u32,
    pub rtt_us: u32,
    pub ssthresh: u32,
    pub cwnd: u32,
    pub reordering: u32,
    pub total_retransmissions: u32,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segments_out: u32,
    pub segments_in: u32,
    /// The minimum round trip of the last minutes (`net.ipv4.tcp_min_rtt_wlen`).
    pub min_rtt_us: u32,
    pub busy_us: u64,
    pub window_limited_us: u64,
    pub buffer_limited_us: u64,
    pub delivered_marked: u32,
    pub bytes_sent: u64,
    pub bytes_retransmitted: u64,
    /// Retransmissions that DSACKs reported as duplicates.
    pub reported_duplicates: u32,
    /// Timeouts in all; Linux 6.7 and later.
    pub timeouts: Option<u16>,
}

impl Info {
    /// Read the kernel's bytes, however many it gave.
    pub fn parse(bytes: &[u8]) -> Info {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let word = |at: usize| read(bytes, at).map_or(0, u32::from_ne_bytes);
        let double = |at: usize| read(bytes, at).map_or(0, u64::from_ne_bytes);
        Info {
            state: byte(0),
            congestion_state: byte(1),
            retransmits: byte(2),
            unacked: word(24),
            sacked: word(28),
            lost: word(32),
            retransmitted: word(36),
            rtt_us: word(68),
            ssthresh: word(76),
            cwnd: word(80),
            reordering: word(88),
            total_retransmissions: word(100),
            bytes_acked: double(120),
            bytes_received: double(128),
            segments_out: word(136),
            segments_in: word(140),
            min_rtt_us: word(148),
            busy_us: double(168),
            window_limited_us: double(176),
            buffer_limited_us: double(184),
            delivered_marked: word(196),
            bytes_sent: double(200),
            bytes_retransmitted: double(208),
            reported_duplicates: word(216),
            timeouts: read(bytes, 240).map(u16::from_ne_bytes),
        }
    }

    /// Segments in flight (RFC 6675's pipe, as Linux counts it).
    pub fn in_flight(&self) -> u32 {
        let gone = self.sacked.saturating_add(self.lost);
        let sent = self.unacked.saturating_add(self.retransmitted);
        sent.saturating_sub(gone)
    }

    /// Slow start threshold in segments; NaN if there is none yet.
    pub fn ssthresh_p(&self) -> f64 {
        if self.ssthresh >= INFINITE_SSTHRESH {
            f64::NAN
        } else {
            f64::from(self.ssthresh)
        }
    }

    /// Smoothed round-trip time; NaN before the first sample.
    pub fn srtt_s(&self) -> f64 {
        if self.rtt_us == 0 {
            f64::NAN
        } else {
            f64::from(self.rtt_us) / 1e6
        }
    }

    /// Least round-trip time, queues and all; NaN before the first sample.
    pub fn min_rtt_s(&self) -> f64 {
        if matches!(self.min_rtt_us, 0 | u32::MAX) {
            f64::NAN
        } else {
            f64::from(self.min_rtt_us) / 1e6
        }
    }

    /// Return true if the handshake is over.
    pub fn is_open(&self) -> bool {
        !matches!(self.state, SYN_SENT | SYN_RECEIVED)
    }

    /// Return true if all data and the FIN behind them are acknowledged.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, FIN_WAIT2 | TIME_WAIT | CLOSED)
    }
}

fn read<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `TCP_INFO` of Linux 6.18 for a loopback connection with 1000 bytes sent and acknowledged.
    const RECORDED: &str = "010000000007aa01e01c030000000000008a000018020000000000000000000000000000000000000000000064000000\
        000000006400000064000000ffff0000d7ff00001a0000000e000000ffffff7f0b000000cbff00000300000000000000d7ff00000000\
        0000c4f3268307000000ffffffffffffffffe90300000000000000000000000000000300000002000000000000000a00000000000000\
        01000000004092d2000000000000000000000000000000000000000000000000000000000200000000000000e8030000000000000000\
        00000000000000000000000000000000000014010000010000000000000000000000000000000000";

    #[test]
    fn a_recorded_connection_is_read() {
        let bytes: Vec<u8> = crate::netlink::hexadecimal(RECORDED);
        let info = Info::parse(&bytes);
        assert_eq!((info.state, info.congestion_state), (1, 0));
        assert_eq!((info.cwnd, info.rtt_us, info.reordering), (11, 26, 3));
        assert!(info.ssthresh_p().is_nan(), "no loss yet");
        assert_eq!(
            (info.bytes_acked, info.bytes_sent),
            (1001, 1000),
            "the SYN counts"
        );
        assert_eq!((info.segments_out, info.segments_in), (3, 2));
        assert_eq!(info.timeouts, Some(0));
        assert_eq!(info.min_rtt_us, 10);
        assert!((info.min_rtt_s() - 10e-6).abs() < 1e-12);
        assert!(info.is_open() && !info.is_closed());
    }

    #[test]
    fn the_pipe_is_outstanding_minus_sacked_and_lost() {
        let info = Info {
            unacked: 10,
            sacked: 3,
            lost: 2,
            retransmitted: 1,
            ..Info::default()
        };
        assert_eq!(info.in_flight(), 6);
    }

    #[test]
    fn an_older_kernel_has_no_count_of_timeouts() {
        assert_eq!(Info::parse(&[1; 232]).timeouts, None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let info = Info::parse(&bytes);
            let _ = (info.in_flight(), info.srtt_s(), info.min_rtt_s());
        }
    }
}
