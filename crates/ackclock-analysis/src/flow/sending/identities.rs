//! The identifications of an end's packets: whether it counts them, and how many are missing then.

/// A sender counts its packets if so many agree with their sequence numbers, and so many times more than do not.
const ENOUGH: u32 = 8;
const RATHER: u32 = 3;
/// They go on if they are further by less, and count if they did so in so many packets in a row.
const LOST_BETWEEN: u16 = 256;
const IN_A_ROW: u8 = 2;
/// More packets than that are not missing at once.
const MOST_MISSING: u16 = 2048;

/// Where a packet belongs among those that its end sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Nobody knows.
    #[default]
    Unknown,
    /// Behind all that were seen, and so many that were not.
    Next {
        /// How many.
        missing: u32,
    },
    /// Before one that was seen.
    Older,
}

/// The identifications of an end's packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identities {
    expected: Option<u16>,
    agreed: u32,
    others: u32,
    /// Packets that nothing explains.
    more: u32,
    in_a_row: u8,
}

impl Identities {
    /// A packet without data.
    #[inline]
    pub fn count(&mut self, identification: Option<u32>) {
        if let Some((own, ahead)) = self.ahead(identification) {
            self.goes_on(ahead);
            if ahead.cast_signed() >= 0 {
                self.expected = Some(own.wrapping_add(1));
            }
        }
    }

    /// Data in so many packets, behind a hole of so many: 0 too if it is none that nobody saw. A gap that is wider than the
    /// hole tells nothing of the sender while it repairs: that can be repairs that were lost.
    #[inline]
    pub fn take(
        &mut self,
        identification: Option<u32>,
        packets: u32,
        hole: u32,
        repairs: impl FnOnce() -> bool,
    ) -> Place {
        let Some((own, ahead)) = self.ahead(identification) else {
            return Place::Unknown;
        };
        self.goes_on(ahead);
        if u32::from(ahead) == hole {
            self.agreed += 1;
        } else if !(u32::from(ahead) > hole && ahead < LOST_BETWEEN && repairs()) {
            self.others += 1;
            if ahead.cast_signed() > 0 {
                let more = u32::from(ahead).saturating_sub(hole);
                self.more = self.more.saturating_add(more);
            }
        }
        let older = ahead.cast_signed() < 0;
        let counts = self.counts();
        if !older || !counts {
            self.expected = Some(own.wrapping_add(packets as u16));
        }
        match (counts, older) {
            (false, _) => Place::Unknown,
            (true, true) => Place::Older,
            (true, false) if ahead > MOST_MISSING => Place::Unknown,
            (true, false) => Place::Next {
                missing: u32::from(ahead),
            },
        }
    }

    /// The identification of the next packet, if they go on and count the packets of this connection.
    pub fn counted(&self) -> Option<u32> {
        self.expected
            .filter(|_| self.in_a_row >= IN_A_ROW && self.rather())
            .map(u32::from)
    }

    #[inline]
    fn goes_on(&mut self, ahead: u16) {
        self.in_a_row = if ahead < LOST_BETWEEN {
            self.in_a_row.saturating_add(1)
        } else {
            self.in_a_row / 2
        };
    }

    #[inline]
    fn counts(&self) -> bool {
        self.agreed >= ENOUGH && self.rather()
    }

    /// It is more likely that it counts the packets of this connection than those of several.
    #[inline]
    fn rather(&self) -> bool {
        self.agreed / RATHER >= self.others && self.agreed >= self.more
    }

    /// 0 is none, but for a sender that counts and has come to it.
    #[inline]
    fn ahead(&self, identification: Option<u32>) -> Option<(u16, u16)> {
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
    fn a_count_goes_through_0_and_packets_without_one_tell_nothing() {
        let mut identities = Identities::default();
        let mut take = |number: u32| identities.take(Some(number), 1, 0, || false);
        for number in 65_500..65_536 {
            take(number);
        }
        assert_eq!(take(0), Place::Next { missing: 0 });
        assert_eq!(take(1), Place::Next { missing: 0 });
        assert_eq!(take(0), Place::Unknown, "no count");
        assert_eq!(take(3), Place::Next { missing: 1 });
        let mut none = Identities::default();
        for _ in 0..20 {
            assert_eq!(none.take(Some(0), 1, 0, || false), Place::Unknown);
        }
    }

    #[test]
    fn gaps_while_a_sender_repairs_speak_neither_for_nor_against_its_count() {
        for (repairs, counted) in [(true, Place::Next { missing: 2 }), (false, Place::Unknown)] {
            let mut identities = Identities::default();
            let mut number = 0;
            for _ in 0..10 {
                identities.take(Some(number + 1), 1, 0, || repairs);
                identities.take(Some(number + 4), 1, 0, || repairs);
                number += 4;
            }
            assert_eq!(identities.take(Some(number + 3), 1, 0, || repairs), counted);
        }
    }

    #[test]
    fn what_goes_on_in_bursts_and_jumps_between_them_counts_packets_of_others_too() {
        for (jump, counts) in [(4, true), (40, false)] {
            let mut identities = Identities::default();
            let mut number = 0;
            for _ in 0..10 {
                for _ in 0..10 {
                    number += 1;
                    identities.take(Some(number), 1, 0, || false);
                }
                assert_eq!(identities.counted().is_some(), counts || number <= 20);
                number += jump;
            }
        }
    }
}
