//! Delivery rates: segments delivered in the time between two deliveries (draft-cheng-iccrg-delivery-rate-estimation).

use crate::Time;

/// The connection's state at a sending, kept with the segment for the delivery-rate sample.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Time of the transmission.
    pub now: Time,
    /// Sending time of the first segment of the present flight.
    pub flight_start: Time,
    /// Time of the latest delivery.
    pub delivered_at: Time,
    /// Segments delivered so far.
    pub delivered: u64,
    /// True if the application has nothing more to send.
    pub application_limited: bool,
}

/// A delivered segment, as it was when last sent.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Its number.
    pub sequence: u64,
    /// Its last sending.
    pub sent: Time,
    /// Sending time of the first segment of its flight.
    pub flight_start: Time,
    /// Latest delivery seen when it was sent.
    pub delivered_at: Time,
    /// Segments delivered when it was sent, modulo 2^32.
    pub delivered: u32,
    /// True if it was sent more than once.
    pub retransmitted: bool,
    /// True if the application limited that transmission.
    pub application_limited: bool,
}

/// Delivery counts for rate samples between a segment's transmission and its delivery.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSampler {
    /// Segments delivered so far.
    pub delivered: u64,
    delivered_at: Time,
    /// Sending time of the segment whose delivery opened the present flight.
    flight_start: Time,
    /// Number of delivered segments up to which the application limits the rate.
    application_limited_until: u64,
}

impl RateSampler {
    /// Begin a new flight when nothing is in flight.
    #[inline]
    pub fn begin_flight(&mut self, now: Time) {
        self.flight_start = now;
        self.delivered_at = now;
    }

    /// Count the segments that an ACK delivered.
    #[inline]
    pub fn deliver(&mut self, segments: u32) {
        self.delivered += u64::from(segments);
    }

    /// Mark the rate as application-limited when the window has room but there is no data: until the segments in flight
    /// have been delivered, the delivery rate is the application's (section 3.4 of the draft).
    #[inline]
    pub fn limit_by_application(&mut self, in_flight: u32) {
        self.application_limited_until = self.delivered + u64::from(in_flight) + 1;
    }

    /// State to store with a segment that is sent now.
    #[inline]
    pub fn sending(&self, now: Time) -> Sending {
        Sending {
            now,
            flight_start: self.flight_start,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            application_limited: self.delivered < self.application_limited_until,
        }
    }

    /// End a rate sample with the delivery of `latest`; returns the segments delivered since it was sent, and the time
    /// that they took, the longer of sending and acknowledging.
    #[inline]
    pub fn sample(&mut self, latest: &Sample, now: Time) -> (u32, Time) {
        self.flight_start = latest.sent;
        self.delivered_at = now;
        let sending = latest.sent.since(latest.flight_start);
        let ack = now.since(latest.delivered_at);
        (self.delivered_since(latest), sending.max(ack))
    }

    /// Segments delivered when `latest` was sent.
    #[inline]
    pub fn delivered_before(&self, latest: &Sample) -> u64 {
        self.delivered - u64::from(self.delivered_since(latest))
    }

    #[inline]
    fn delivered_since(&self, latest: &Sample) -> u32 {
        (self.delivered as u32).wrapping_sub(latest.delivered)
    }
}
