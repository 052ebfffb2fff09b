//! The identifications of an end's packets: whether it counts them, and how many are missing then.

/// A sender counts its packets if the identifications of so many agree with the sequence numbers.
const MIN_AGREEMENTS: u32 = 8;
/// A counter that numbers so many packets of a connection for each gap that nothing explains counts no others.
const MIN_OWN: u32 = 100;
/// The same behind a limiter that drops retransmissions, too: those leave gaps that nothing explains.
const MIN_OWN_LOSSY: u32 = 30;
/// Packets with data for each without, of a direction whose missing packets have data.
const MIN_DATA: u64 = 50;
/// Minimum ratio of identifications that agree to those that do not.
const MIN_RATIO: u32 = 3;
/// Identifications less than this ahead of the expected one continue the sequence.
const MAX_LOST: u16 = 256;
/// The identification of the next packet is predicted once so many continued the sequence; one that does not halves the
/// number.
const MIN_RUN: u8 = 2;
/// More packets than that are not missing at once.
const MAX_MISSING: u16 = 2048;

/// The position of a packet in the sender's IP identification sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpIdOrder {
    /// Unknown.
    #[default]
    Unknown,
    /// Behind all that were seen, and so many that were not.
    Next {
        /// The number of them.
        missing: u32,
    },
    /// Before one that was seen.
    Older,
}

impl IpIdOrder {
    /// The same without a gap before it.
    pub fn without_gap(self) -> Self {
        match self {
            Self::Next { .. } => Self::Next { missing: 0 },
            other => other,
        }
    }
}

/// The identifications of an end's packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct IpIdCounter {
    expected: Option<u16>,
    agreed: u32,
    others: u32,
    /// Packets that nothing explains.
    more: u32,
    /// Numbers that were passed over, but for those of packets that came late.
    missing: u64,
    /// Packets with and without data.
    with_data: u64,
    without_data: u64,
    run: u8,
    /// Packets whose number followed the one before, or passed over just the packets of a hole; and those that jumped.
    consecutive: u32,
    jumps: u32,
}

impl IpIdCounter {
    /// A packet without data.
    #[inline]
    pub fn count(&mut self, identification: Option<u32>) {
        if let Some((own, offset_to_expected)) = self.offset_to_expected(identification) {
            self.update_run(offset_to_expected);
            self.update_jumps(offset_to_expected, offset_to_expected == 0);
            self.without_data += 1;
            self.count_missing(offset_to_expected, 1);
            if offset_to_expected.cast_signed() >= 0 {
                self.expected = Some(own.wrapping_add(1));
            }
        }
    }

    /// Process data of `packets` packets behind a hole of `hole` packets (0: none, or one that is accounted for). A gap
    /// wider than the hole says nothing about the sender while it retransmits: the missing packets may be lost
    /// retransmissions. Nor does data below what was captured before (`is_old`) under one of the last numbers: it is
    /// reordered (RFC 4737), which leaves the counter where it is.
    #[inline]
    pub fn on_data(
        &mut self,
        identification: Option<u32>,
        packets: u32,
        hole: u32,
        is_old: bool,
        is_retransmitting: impl FnOnce() -> bool,
    ) -> IpIdOrder {
        let Some((own, offset_to_expected)) = self.offset_to_expected(identification) else {
            return IpIdOrder::Unknown;
        };
        self.with_data += u64::from(packets);
        self.count_missing(offset_to_expected, packets);
        if is_old && offset_to_expected.wrapping_neg() < MAX_LOST && offset_to_expected != 0 {
            return if self.is_counter() {
                IpIdOrder::Older
            } else {
                IpIdOrder::Unknown
            };
        }
        self.update_run(offset_to_expected);
        if u32::from(offset_to_expected) == hole {
            self.agreed += 1;
            self.update_jumps(offset_to_expected, true);
        } else if !(u32::from(offset_to_expected) > hole
            && offset_to_expected < MAX_LOST
            && is_retransmitting())
        {
            self.others += 1;
            self.update_jumps(offset_to_expected, false);
            if offset_to_expected.cast_signed() > 0 {
                let more = u32::from(offset_to_expected).saturating_sub(hole);
                self.more = self.more.saturating_add(more);
            }
        }
        let older = offset_to_expected.cast_signed() < 0;
        let is_counter = self.is_counter();
        if !older || !is_counter {
            self.expected = Some(own.wrapping_add(packets as u16));
        }
        match (is_counter, older) {
            (false, _) => IpIdOrder::Unknown,
            (true, true) => IpIdOrder::Older,
            (true, false) if offset_to_expected > MAX_MISSING => IpIdOrder::Unknown,
            (true, false) => IpIdOrder::Next {
                missing: u32::from(offset_to_expected),
            },
        }
    }

    /// The identification of the next packet, if they go on and count the packets of this connection: most of them
    /// followed the one before, and did not jump as those of a host with other connections do.
    pub fn next_expected(&self) -> Option<u32> {
        let is_own = self.consecutive >= self.jumps;
        self.expected
            .filter(|_| is_own && self.run >= MIN_RUN && self.is_mostly_consistent())
            .map(u32::from)
    }

    /// The identification behind that of the last packet, before there is data: if it counts packets, the next one.
    pub fn next_after_handshake(&self) -> Option<u32> {
        self.expected.filter(|_| self.with_data == 0).map(u32::from)
    }

    /// Return true if the counter is this connection's and not its host's: nearly all gaps in the sequence numbers agree
    /// with it, or nearly all of the numbers that it passed over are explained.
    pub fn is_of_connection(&self) -> bool {
        self.numbers_own(MIN_OWN)
    }

    /// Return true if it numbers more than `packets` of them for each gap that nothing explains.
    fn numbers_own(&self, packets: u32) -> bool {
        self.agreed / packets > self.others.min(self.more)
    }

    /// Return the number of packets with data that were sent and not captured, if the counter is this connection's:
    /// None if too many of the missing may have no data.
    pub fn missing_data(&self) -> Option<u64> {
        let is_data = self.with_data >= MIN_DATA * self.without_data;
        (is_data && self.numbers_own(MIN_OWN_LOSSY)).then_some(self.missing)
    }

    #[inline]
    fn count_missing(&mut self, offset_to_expected: u16, packets: u32) {
        if offset_to_expected < MAX_MISSING {
            self.missing += u64::from(offset_to_expected);
        } else if offset_to_expected.cast_signed() < 0 {
            self.missing = self.missing.saturating_sub(u64::from(packets));
        }
    }

    #[inline]
    fn update_jumps(&mut self, offset_to_expected: u16, follows: bool) {
        if self.expected.is_some() && offset_to_expected.cast_signed() >= 0 {
            self.consecutive += u32::from(follows);
            self.jumps += u32::from(!follows);
        }
    }

    #[inline]
    fn update_run(&mut self, offset_to_expected: u16) {
        self.run = if offset_to_expected < MAX_LOST {
            self.run.saturating_add(1)
        } else {
            self.run / 2
        };
    }

    #[inline]
    fn is_counter(&self) -> bool {
        self.agreed >= MIN_AGREEMENTS && self.is_mostly_consistent()
    }

    /// It is more likely that it counts the packets of this connection than those of several.
    #[inline]
    fn is_mostly_consistent(&self) -> bool {
        self.agreed / MIN_RATIO >= self.others && self.agreed >= self.more
    }

    /// Return the identification and its offset to the expected one; 0 means none, unless it is the one expected.
    #[inline]
    fn offset_to_expected(&self, identification: Option<u32>) -> Option<(u16, u16)> {
        let own = identification? as u16;
        if own == 0 && self.expected != Some(0) {
            return None;
        }
        let expected = self.expected.unwrap_or(own);
        Some((own, own.wrapping_sub(expected)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_wraps_through_0_and_constant_0_is_no_counter() {
        let mut counter = IpIdCounter::default();
        let mut on_data = |number: u32| counter.on_data(Some(number), 1, 0, false, || false);
        for number in 65_500..65_536 {
            on_data(number);
        }
        assert_eq!(on_data(0), IpIdOrder::Next { missing: 0 });
        assert_eq!(on_data(1), IpIdOrder::Next { missing: 0 });
        assert_eq!(on_data(0), IpIdOrder::Unknown, "no count");
        assert_eq!(on_data(3), IpIdOrder::Next { missing: 1 });
        let mut none = IpIdCounter::default();
        for _ in 0..20 {
            assert_eq!(
                none.on_data(Some(0), 1, 0, false, || false),
                IpIdOrder::Unknown
            );
        }
    }

    #[test]
    fn gaps_during_recovery_are_neutral() {
        for (is_retransmitting, next_expected) in [
            (true, IpIdOrder::Next { missing: 2 }),
            (false, IpIdOrder::Unknown),
        ] {
            let mut counter = IpIdCounter::default();
            let mut number = 0;
            for _ in 0..10 {
                counter.on_data(Some(number + 1), 1, 0, false, || is_retransmitting);
                counter.on_data(Some(number + 4), 1, 0, false, || is_retransmitting);
                number += 4;
            }
            assert_eq!(
                counter.on_data(Some(number + 3), 1, 0, false, || is_retransmitting),
                next_expected
            );
        }
    }

    #[test]
    fn reordered_packets_leave_the_counter_where_it_is() {
        let mut counter = IpIdCounter::default();
        counter.count(Some(100));
        // Every tenth packet overtakes three: a hole of three, which they fill under older numbers.
        for number in (100..300).step_by(10) {
            counter.on_data(Some(number + 4), 1, 3, false, || false);
            for late in 1..4 {
                let order = counter.on_data(Some(number + late), 1, 0, true, || true);
                assert_ne!(order, IpIdOrder::Next { missing: 0 }, "{number} {late}");
                assert!(number < 120 || order == IpIdOrder::Older, "{number} {late}");
            }
            for next in 5..11 {
                counter.on_data(Some(number + next), 1, 0, false, || false);
            }
        }
        assert_eq!((counter.others, counter.more), (0, 0));
    }

    #[test]
    fn a_few_gaps_that_nothing_explains_are_lost_retransmissions() {
        let missing = |every: u32| {
            let mut counter = IpIdCounter::default();
            let mut number = 0;
            for packet in 1..=1000 {
                number += if packet % every == 0 { 2 } else { 1 };
                counter.on_data(Some(number), 1, 0, false, || false);
            }
            counter.missing_data()
        };
        assert_eq!(missing(50), Some(20));
        assert_eq!(
            missing(20),
            None,
            "the counter of a host with other connections"
        );
    }

    #[test]
    fn numbers_that_jump_from_the_start_predict_nothing() {
        let mut counter = IpIdCounter::default();
        for number in [18_547, 18_555, 18_580, 18_581] {
            counter.count(Some(number));
            assert_eq!(counter.next_expected(), None, "{number}");
        }
        for number in 18_582..18_590 {
            counter.count(Some(number));
        }
        assert_eq!(counter.next_expected(), Some(18_590));
    }

    #[test]
    fn a_counter_shared_with_other_flows_jumps_between_bursts() {
        for (jump, is_counter) in [(4, true), (40, false)] {
            let mut counter = IpIdCounter::default();
            let mut number = 0;
            for _ in 0..10 {
                for _ in 0..10 {
                    number += 1;
                    counter.on_data(Some(number), 1, 0, false, || false);
                }
                assert_eq!(
                    counter.next_expected().is_some(),
                    is_counter || number <= 20
                );
                number += jump;
            }
        }
    }
}
