//! Groups of packets, and the filter that estimates how the one-way delay changes from group to group.
//!
//! draft-ietf-rmcat-gcc-02, sections 5.2 and 5.3. Times in ms, as in the draft. With the send times T and the arrival
//! times t of the last packets of two successive groups,
//!
//! ```text
//!   d(i)     = t(i) − t(i−1) − (T(i) − T(i−1))
//!   z(i)     = d(i) − m(i−1)
//!   k(i)     = (e(i−1) + q) / (var_v(i) + e(i−1) + q)
//!   m(i)     = m(i−1) + k(i) z(i)
//!   e(i)     = (1 − k(i)) (e(i−1) + q)
//!   var_v(i) = max(alpha var_v(i−1) + (1 − alpha) z(i)², 1),   alpha = (1 − chi)^(30 / (1000 f_max))
//! ```
//!
//! In the update of `var_v` a z beyond three standard deviations counts as three.
//!
//! Our deviations: the limit is for a negative z as well. A packet that others overtake within a report takes part,
//! where the draft leaves it out (section 5.1).

use std::collections::VecDeque;

use ackclock_core::Time;

use crate::realtime::PacketReport;

/// K: groups over which the highest rate of groups is measured. The draft leaves it open; about two seconds of video.
const RATE_GROUPS: usize = 60;

/// The change from one group to the next, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Between their send times.
    pub sent_ms: f64,
    /// Between their arrivals.
    pub arrived_ms: f64,
}

impl Change {
    /// d(i).
    pub fn delay_ms(&self) -> f64 {
        self.arrived_ms - self.sent_ms
    }
}

/// A group: the times of its first and of its last packet.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: Time,
    sent: Time,
    arrival: Time,
}

/// Merges packets into groups.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    burst_time: Time,
    previous: Option<Group>,
    current: Option<Group>,
}

impl Groups {
    /// Groups of packets that are sent within `burst_time`.
    pub fn new(burst_time: Time) -> Groups {
        Groups {
            burst_time,
            previous: None,
            current: None,
        }
    }

    /// Add a packet; returns the change between the last two groups if it opens another.
    pub fn add(&mut self, packet: &PacketReport) -> Option<Change> {
        let arrival = packet.arrival?;
        let next = Group {
            first_sent: packet.sent,
            sent: packet.sent,
            arrival,
        };
        let Some(current) = &mut self.current else {
            self.current = Some(next);
            return None;
        };
        if belongs(current, &next, self.burst_time) {
            current.sent = next.sent;
            current.arrival = current.arrival.max(arrival);
            return None;
        }
        let last = *current;
        let previous = self.previous.replace(last);
        self.current = Some(next);
        previous.map(|previous| change(&previous, &last))
    }
}

/// Return true if a packet belongs to a group: sent in the same burst, or delivered in one after it had waited.
fn belongs(group: &Group, packet: &Group, burst_time: Time) -> bool {
    if packet.sent.since(group.first_sent) <= burst_time {
        return true;
    }
    let change = change(group, packet);
    change.arrived_ms < 1e3 * burst_time.seconds() && change.delay_ms() < 0.0
}

fn change(from: &Group, to: &Group) -> Change {
    Change {
        sent_ms: difference_ms(from.sent, to.sent),
        arrived_ms: difference_ms(from.arrival, to.arrival),
    }
}

fn difference_ms(from: Time, to: Time) -> f64 {
    1e3 * (to.since(from).seconds() - from.since(to).seconds())
}

/// The arrival-time filter.
#[derive(Clone, Debug)]
pub struct KalmanFilter {
    state_noise: f64,
    chi: f64,
    /// m, in ms.
    estimate_ms: f64,
    /// e, in ms².
    error: f64,
    /// `var_v`, in ms².
    noise: f64,
    /// Intervals between the send times of the last groups, in ms.
    intervals_ms: VecDeque<f64>,
}

impl KalmanFilter {
    /// A filter with the variance of the state noise q, the initial error e(0) and the coefficient chi.
    pub fn new(state_noise: f64, initial_error: f64, chi: f64) -> KalmanFilter {
        KalmanFilter {
            state_noise,
            chi,
            estimate_ms: 0.0,
            error: initial_error,
            noise: 1.0,
            intervals_ms: VecDeque::new(),
        }
    }

    /// Process the change between two groups; returns m in ms.
    pub fn update(&mut self, change: &Change) -> f64 {
        let innovation = change.delay_ms() - self.estimate_ms;
        let bound = 3.0 * self.noise.sqrt();
        let square = innovation.clamp(-bound, bound).powi(2);
        let alpha = self.alpha(change.sent_ms);
        self.noise = (alpha * self.noise + (1.0 - alpha) * square).max(1.0);
        let predicted = self.error + self.state_noise;
        let gain = predicted / (self.noise + predicted);
        self.estimate_ms += gain * innovation;
        self.error = (1.0 - gain) * predicted;
        self.estimate_ms
    }

    /// alpha, which makes the memory of the noise a time and not a number of groups.
    fn alpha(&mut self, interval_ms: f64) -> f64 {
        self.intervals_ms.push_front(interval_ms);
        self.intervals_ms.truncate(RATE_GROUPS);
        let shortest_ms = self
            .intervals_ms
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min);
        (1.0 - self.chi).powf(30.0 * shortest_ms.max(0.0) / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::contract::report;
    use super::*;

    const fn ms(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    #[test]
    fn packets_of_one_burst_are_a_group_and_its_last_packet_counts() {
        let mut groups = Groups::new(ms(5));
        let times = [(0, 50), (3, 60), (5, 65), (33, 90), (66, 124), (99, 160)];
        let changes: Vec<_> = times
            .iter()
            .filter_map(|&(sent, arrival)| groups.add(&report(0, sent, arrival, 1000)))
            .collect();
        // From (5, 65) to (33, 90), and to (66, 124).
        assert_eq!(changes.len(), 2);
        assert!(
            (changes[0].sent_ms - 28.0).abs() < 1e-9 && (changes[0].delay_ms() + 3.0).abs() < 1e-9
        );
        assert!((changes[1].delay_ms() - 1.0).abs() < 1e-9);
    }

    /// Section 5.2: what an outage has held back arrives in one burst and is one group.
    #[test]
    fn a_burst_after_an_outage_is_merged() {
        let mut groups = Groups::new(ms(5));
        for (sent, arrival) in [(0, 50), (33, 300), (66, 302), (99, 304)] {
            assert!(groups.add(&report(0, sent, arrival, 1000)).is_none() || sent == 66);
        }
        let change = groups.add(&report(0, 300, 350, 1000)).expect("two groups");
        assert!((change.sent_ms - 99.0).abs() < 1e-9 && (change.arrived_ms - 254.0).abs() < 1e-9);
    }

    /// With groups each 33.3 ms alpha = 1 − chi. From e(0) = 0.1, q = 0.001 and var_v = 1, d = 2 ms gives var_v =
    /// 0.99 + 0.01 · 4 = 1.03, k = 0.101/1.131 = 0.0893015, m = 0.1786030 and e = 0.101 (1 − k) = 0.0919805.
    #[test]
    fn the_first_step_of_the_filter_by_hand() {
        let mut filter = KalmanFilter::new(1e-3, 0.1, 0.01);
        let change = |delay_ms| Change {
            sent_ms: 1000.0 / 30.0,
            arrived_ms: 1000.0 / 30.0 + delay_ms,
        };
        let m = filter.update(&change(2.0));
        assert!((m - 0.178_603_0).abs() < 1e-6, "{m}");
        assert!((filter.noise - 1.03).abs() < 1e-9);
        assert!(
            (filter.error - 0.091_980_5).abs() < 1e-6,
            "{}",
            filter.error
        );
        // A jump of 1 s counts as three standard deviations in the noise, z = 3 √1.03, and in full in the estimate.
        let next = filter.update(&change(1000.0));
        let noise = 0.99 * 1.03 + 0.01 * 9.0 * 1.03;
        assert!((filter.noise - noise).abs() < 1e-9, "{}", filter.noise);
        let gain = 0.092_980_5 / (noise + 0.092_980_5);
        assert!((next - m - gain * (1000.0 - m)).abs() < 1e-3, "{next}");
    }

    #[test]
    fn the_estimate_converges_to_a_constant_change() {
        let mut filter = KalmanFilter::new(1e-3, 0.1, 0.01);
        let change = Change {
            sent_ms: 33.0,
            arrived_ms: 34.5,
        };
        let estimate = (0..400).fold(0.0, |_, _| filter.update(&change));
        assert!((estimate - 1.5).abs() < 1e-3, "{estimate}");
    }
}
