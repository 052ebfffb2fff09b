//! `ared`: RED that sets itself from the link's rate and a target delay, and adapts its probability.
//!
//! S. Floyd, R. Gummadi, S. Shenker: Adaptive RED: An Algorithm for Increasing the Robustness of RED's Active
//! Queue Management, 2001. The weight is 1 − exp(−1/C) with the link's rate C in packets per second, a time
//! constant of one second; the lower threshold is half of the target, at least five packets, and the upper
//! one thrice the lower, so that the middle of the two is the target (section 4.3). The maximum probability is
//! adapted twice a second (section 4). Gentle, by default.
//!
//! Deviations: those of `red`. Bytes are counted, five packets being as many average ones, unless
//! `bytes = false`.

use ackclock_core::Time;
use serde::de::Error as _;
use serde::Deserialize;
use serde_json::Value;

use crate::queue::red::early::Settings;
use crate::queue::red::{Marking, Measure, QueueLimit, RedQueue};
use crate::queue::{require, Queue, QueueContext};

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // they are switches of the algorithm spec
struct Parameters {
    /// Packets that fit.
    limit_packets: u32,
    /// Target delay of the average.
    target_s: f64,
    /// Smallest lower threshold.
    floor_packets: u32,
    /// Length of an average packet.
    avpkt_bytes: u32,
    /// Probability at the upper threshold to begin with.
    probability: f64,
    /// Interval of adaptation.
    interval_s: f64,
    /// True if the probability rises linearly above the upper threshold; else it jumps to 1.
    gentle: bool,
    /// True if drops are at least 1/probability packets apart.
    wait: bool,
    /// True if packets of ECN-capable transports are marked instead of dropped.
    ecn: bool,
    /// True if the average counts bytes.
    bytes: bool,
    /// True if nothing is dropped early that finds the queue empty.
    spare_empty: bool,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let given = Parameters::deserialize(parameters)?;
    let settings = given.settings(context.rate_bps)?;
    let measure = Measure {
        avpkt_bytes: given.avpkt_bytes,
        bytes: given.bytes,
        weighted: false,
        spare_empty: given.spare_empty,
    };
    let marking = Marking {
        ecn: given.ecn,
        ..Marking::default()
    };
    let limit = QueueLimit::Packets(given.limit_packets);
    let queue = RedQueue::new(limit, measure, marking, settings, context)?;
    Ok(Queue::other(queue))
}

impl Parameters {
    /// Derive the settings of RED from the link's rate and the target.
    fn settings(&self, rate_bps: f64) -> Result<Settings, serde_json::Error> {
        require(
            self.avpkt_bytes > 0 && self.floor_packets > 0,
            "avpkt_bytes and floor_packets must be at least 1",
        )?;
        for (name, seconds) in [("target_s", self.target_s), ("interval_s", self.interval_s)] {
            if !(seconds >= 1e-6 && seconds.is_finite()) {
                let expected = format!("{name} must be at least 1e-6, found {seconds}");
                return Err(serde_json::Error::custom(expected));
            }
        }
        let avpkt = f64::from(self.avpkt_bytes);
        let packets_per_second = rate_bps / (8.0 * avpkt);
        let min_packets =
            (packets_per_second * self.target_s / 2.0).max(f64::from(self.floor_packets));
        Ok(Settings {
            min: min_packets * avpkt,
            max: 3.0 * min_packets * avpkt,
            weight: -(-1.0 / packets_per_second).exp_m1(),
            max_probability: self.probability,
            gentle: self.gentle,
            wait: self.wait,
            adaptation: Some(Time::from_seconds(self.interval_s)),
            packet_time: Time::from_seconds(packets_per_second.recip()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{packet, CONTEXT};
    use crate::queue::Drops;
    use serde_json::json;

    fn parameters() -> Value {
        json!({
            "limit_packets": 1000,
            "target_s": 0.02,
            "floor_packets": 5,
            "avpkt_bytes": 1500,
            "probability": 0.1,
            "interval_s": 0.5,
            "gentle": true,
            "wait": false,
            "spare_empty": false,
            "ecn": false,
            "bytes": true,
        })
    }

    fn settings(changes: &Value, rate_bps: f64) -> Settings {
        let mut all = parameters();
        for (name, value) in changes.as_object().expect("a table") {
            all[name] = value.clone();
        }
        let parameters: Parameters = serde_json::from_value(all).expect("valid");
        parameters.settings(rate_bps).expect("valid")
    }

    fn near(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-3,
            "{found} for {expected}"
        );
    }

    /// 12 Mb/s are 1000 packets of 1500 bytes a second; 20 ms are 20 of them, so the thresholds are 10 and 30
    /// packets; the weight is 1 − e^(−0.001).
    #[test]
    fn thresholds_and_weight_follow_from_rate_and_target() {
        let settings = settings(&json!({}), 12e6);
        near(settings.min, 15_000.0);
        near(settings.max, 45_000.0);
        near(settings.weight, 0.000_999_5);
        assert_eq!(settings.packet_time, Time::from_milliseconds(1));
    }

    /// On a slow link half of the target would be less than five packets.
    #[test]
    fn the_lower_threshold_has_a_floor() {
        near(settings(&json!({}), 1e6).min, 7500.0);
        near(settings(&json!({ "floor_packets": 1 }), 2.4e6).min, 3000.0);
    }

    /// A queue that is held at 30 packets, the upper threshold of 20 ms at 12 Mb/s, for 20 s: the average gets
    /// above the target range (22 packets) within 1.4 s, and from then on the probability rises by 0.01 each
    /// half second, so packets are dropped ever more often.
    #[test]
    fn drops_become_more_frequent_while_the_average_is_above_the_target() {
        let context = QueueContext {
            rate_bps: 12e6,
            ..CONTEXT
        };
        let mut queue = make(&parameters(), &context).expect("valid");
        let (mut drops, mut dropped) = (Drops::default(), [0, 0]);
        for millisecond in 0..20_000 {
            let now = Time::from_milliseconds(millisecond);
            while queue.backlog().packets < 29 {
                queue.enqueue(packet(0, 1500), now, &mut drops);
            }
            queue.enqueue(packet(0, 1500), now, &mut drops);
            queue.dequeue(now, &mut drops);
            let half = usize::from(millisecond >= 10_000);
            dropped[half] += drops.drain().count();
        }
        assert!(dropped[1] as f64 > 1.5 * dropped[0] as f64, "{dropped:?}");
    }

    #[test]
    fn parameters_out_of_range_are_rejected() {
        for (name, value) in [
            ("limit_packets", json!(0)),
            ("target_s", json!(0.0)),
            ("interval_s", json!(0.0)),
            ("floor_packets", json!(0)),
            ("avpkt_bytes", json!(0)),
            ("probability", json!(0.0)),
            ("weight", json!(0.002)),
        ] {
            let mut all = parameters();
            all[name] = value;
            assert!(make(&all, &CONTEXT).is_err(), "{all}");
        }
    }
}
