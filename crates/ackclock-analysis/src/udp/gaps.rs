//! Gaps in which neither end of a flow sends.
//!
//! While something that asks for an acknowledgement is outstanding, its sender's probe timer runs, for less than four
//! round trips and the peer's ACK delay (RFC 9002 section 6.2.1). So in a longer gap nothing is outstanding: an
//! application, or its host, did not send. But timers that back off, or whose probes are lost, make longer gaps, too. So
//! both ends must have sent since the gap before, and what ends the gap must be answered before the next one. Without an
//! RTT, or before the handshake is complete, a gap is undecided.

/// Shorter gaps are none, in nanoseconds; the same as for stalls of TCP.
const MIN_GAP_NS: i64 = 200_000_000;
/// Gaps of so many RTTs and the ACK delay are longer than a probe timer: an RTT, and four times its variation, which is
/// half an RTT at first (RFC 9002 section 5.3), make three.
const PROBE_RTTS: i64 = 4;
/// The default of `max_ack_delay` (RFC 9000 section 18.2).
const MAX_ACK_DELAY_NS: i64 = 25_000_000;
/// The gaps that are listed.
const MAX_LISTED: usize = 64;

/// A gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it began.
    pub start_ns: i64,
    /// Its duration.
    pub duration_ns: i64,
    /// The end that sent next, 0 the client.
    pub next: usize,
    /// An application that did not send; otherwise its cause is undecided.
    pub is_application: bool,
}

/// The gaps of a flow.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// The first of them.
    pub listed: Vec<Gap>,
    /// The number of gaps.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub total_ns: i64,
    /// The sum of those by the application of each end, in nanoseconds.
    pub application_ns: [i64; 2],
    /// The last gap, while what ended it is not answered: the application's if it will be.
    pending: Option<Gap>,
    /// Packets of each end since the last gap.
    since: [u64; 2],
}

impl Gaps {
    /// A packet of one end comes at `now_ns` after one at `before_ns`; `rtt_ns` is the largest RTT known since the
    /// handshake was complete.
    pub fn take(&mut self, end: usize, before_ns: i64, now_ns: i64, rtt_ns: Option<i64>) {
        let duration_ns = now_ns - before_ns;
        let timer_ns = rtt_ns.map(|rtt_ns| PROBE_RTTS * rtt_ns + MAX_ACK_DELAY_NS);
        if duration_ns > MIN_GAP_NS.max(timer_ns.unwrap_or(0)) {
            let gap = Gap {
                start_ns: before_ns,
                duration_ns,
                next: end,
                is_application: false,
            };
            self.add(gap);
            let is_exchange = self.since.iter().all(|&packets| packets > 0);
            self.pending = (timer_ns.is_some() && is_exchange).then_some(gap);
            self.since = [0; 2];
        } else if let Some(gap) = self.pending.take_if(|gap| gap.next != end) {
            self.application_ns[gap.next] += gap.duration_ns;
            if let Some(listed) =
                (self.listed.last_mut()).filter(|one| one.start_ns == gap.start_ns)
            {
                listed.is_application = true;
            }
        }
        self.since[end] += 1;
    }

    fn add(&mut self, gap: Gap) {
        self.count += 1;
        self.total_ns += gap.duration_ns;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn of(times_ms: &[(usize, i64)], rtt_ms: Option<i64>) -> Gaps {
        let mut gaps = Gaps::default();
        let mut before = times_ms[0].1;
        for &(end, now) in times_ms {
            gaps.take(end, before * MS, now * MS, rtt_ms.map(|rtt| rtt * MS));
            before = now;
        }
        gaps
    }

    #[test]
    fn a_gap_longer_than_a_probe_timer_is_an_applications() {
        let gaps = of(&[(0, 0), (1, 20), (1, 1020), (0, 1040)], Some(40));
        assert_eq!((gaps.count, gaps.total_ns), (1, 1000 * MS));
        assert_eq!(gaps.application_ns, [0, 1000 * MS]);
        let slow = of(&[(0, 0), (1, 900), (0, 1800)], Some(300));
        assert_eq!(slow.count, 0);
    }

    #[test]
    fn without_a_round_trip_it_is_undecided() {
        let gaps = of(&[(0, 0), (1, 1000)], None);
        assert_eq!((gaps.count, gaps.application_ns), (1, [0, 0]));
    }

    #[test]
    fn gaps_between_packets_of_one_end_are_a_timers() {
        let backoff = of(
            &[(1, 0), (0, 20), (0, 320), (0, 920), (0, 2120), (1, 2140)],
            Some(40),
        );
        assert_eq!((backoff.count, backoff.application_ns), (3, [0, 0]));
        assert!(backoff.listed.iter().all(|gap| !gap.is_application));
        let answered = of(
            &[(1, 0), (0, 20), (0, 1020), (1, 1040), (0, 2040), (1, 2060)],
            Some(40),
        );
        assert_eq!(answered.application_ns, [2000 * MS, 0]);
        let to_the_end = of(&[(1, 0), (0, 20), (0, 1020)], Some(40));
        assert_eq!(to_the_end.application_ns, [0, 0]);
    }
}
