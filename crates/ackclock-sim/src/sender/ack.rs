//! Processing of ACKs: deliveries, RTT samples, delivery rates.

use ackclock_core::{Rate, Time};

use super::scoreboard::{Delivery, DetectedLosses, RackUpdate};
use super::undo::Evidence;
use super::{CaState, Outlet, Sender};
use crate::options::{timestamp, Blocks, TIMESTAMP_TICK};
use crate::packet::Packet;
use ackclock_congestion::Ack;
use ackclock_plan::RttSampling;

impl Sender {
    /// Process an ACK of an open connection.
    #[inline(never)]
    pub(super) fn on_ack(
        &mut self,
        packet: &Packet,
        blocks: Option<&Blocks>,
        is_update: bool,
        now: Time,
        out: &mut impl Outlet,
    ) {
        if blocks.is_none() && self.only_advances(packet) {
            self.process_ack::<true>(packet, None, is_update, now, out);
        } else {
            self.process_ack::<false>(packet, blocks, is_update, now, out);
        }
    }

    /// True if an ACK without SACK blocks only advances: all was and is in order, it echoes no new mark, and no tail loss
    /// probe is outstanding.
    #[inline(always)]
    fn only_advances(&self, packet: &Packet) -> bool {
        packet.number() > self.board.unacknowledged
            && self.tcp.sack
            && self.is_in_order(packet)
            && self.tlp.is_none()
            && !self.echoes_marks(packet)
    }

    /// Process an ACK. It is compiled twice, within one function, so that the compiler knows what has been tested: an
    /// ACK that only advances (`IN_ORDER`), as most do, does not pay for the other cases.
    #[inline(always)]
    fn process_ack<const IN_ORDER: bool>(
        &mut self,
        packet: &Packet,
        blocks: Option<&Blocks>,
        is_update: bool,
        now: Time,
        out: &mut impl Outlet,
    ) {
        let blocks = if IN_ORDER { None } else { blocks };
        let ack = packet.number();
        if ack > self.board.next {
            return;
        }
        let prior_unacknowledged = self.board.unacknowledged;
        let prior_in_flight = self.flight::<IN_ORDER>();
        let prior_outstanding = self.board.outstanding();
        let prior_highest = self.board.highest_sacked();
        let advanced = IN_ORDER || ack > prior_unacknowledged;
        // RFC 5681 section 2: an ACK that moves the window is no duplicate.
        let reports_nothing = !advanced && !is_update && blocks.is_none();
        if !IN_ORDER && packet.flags.has_dsack() {
            self.process_dsack(blocks, out);
        }
        let delivery = if IN_ORDER {
            self.deliver_in_order(ack)
        } else {
            self.take_delivery(packet, blocks, (advanced, is_update), now)
        };
        let rack_update = self.rack.advance(&delivery, now);
        let rtt = self.measure_rtt(&delivery, packet, advanced, now);
        self.ack_rtt = rtt;
        let rate = self.measure_rate(&delivery, now);
        let old = !IN_ORDER && (ack < prior_unacknowledged || prior_outstanding == 0);
        let ecn = self.process_ecn(packet, &delivery, old);
        let latest = delivery.latest;
        let prior_delivered = latest.map(|latest| self.rates.delivered_before(&latest));
        let found = if IN_ORDER || self.is_in_order(packet) {
            DetectedLosses::default()
        } else {
            self.note_reordering(delivery.original.filter(|&late| Some(late) < prior_highest));
            self.adapt_to_reordering(prior_delivered);
            let evidence = Evidence {
                echo: self.tcp.timestamps.then_some(packet.timestamp),
                advanced,
                prior_unacknowledged,
                original: delivery.original,
                selective: delivery.sacked > 0,
                duplicate: reports_nothing,
            };
            self.detect_losses(&evidence, rack_update, now, out)
        };
        if !IN_ORDER {
            self.process_probe_ack(packet, reports_nothing, now);
            self.change_state(prior_in_flight, now, out);
            if ecn.is_signalled {
                self.react_to_ecn(prior_in_flight, now, out);
            }
            if delivery.segments > 0 {
                self.follow_prr(delivery.segments, advanced && found.lost == 0);
            }
            self.retransmit_hole(&found, now, out);
        }
        let (growth, acks_new_data) = self.growth(packet, delivery.segments, advanced);
        self.controller.on_ack(&Ack {
            now: self.controller_time(now),
            newly_acked: growth,
            newly_acked_bytes: u64::from(growth) * u64::from(self.tcp.mss_bytes),
            may_raise_cwnd: acks_new_data || (self.reordering.is_far() && delivery.segments > 0),
            cumulatively_acked: ack.saturating_sub(prior_unacknowledged) as u32,
            has_sack: blocks.is_some(),
            window_update: packet.flags.has_opened(),
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            prior_in_flight,
            in_flight: self.flight::<IN_ORDER>(),
            delivery_rate: rate,
            delivered: self.rates.delivered,
            prior_delivered: prior_delivered.unwrap_or(self.rates.delivered),
            application_limited: latest.is_some_and(|latest| latest.application_limited),
            window_limited: !self.tcp.window_validation
                || self.cwnd_usage.allows_growth(self.controller.as_ref()),
            newly_lost: found.lost,
            marked_bytes: u64::from(ecn.segments) * u64::from(self.tcp.mss_bytes),
            next: self.board.next,
            unacknowledged: ack,
            recovering: !IN_ORDER && matches!(self.ca_state, CaState::Recovery | CaState::Cwr),
            in_loss: !IN_ORDER && self.ca_state == CaState::Loss,
            paced: self.pacing.is_on,
            next_departure: self.pacing.next,
        });
        if IN_ORDER || self.prr.is_none() {
            self.follow_controller(delivery.segments);
        }
        self.transmit_open::<IN_ORDER>(now, out);
        if !IN_ORDER && self.frto.prefers_new_data && !self.confirm_new_data() {
            self.transmit_open::<IN_ORDER>(now, out);
        }
        self.refill(now, out);
        if !IN_ORDER {
            self.frto.prefers_new_data = false;
        }
        self.rearm(&delivery, &found, advanced, now);
        if !IN_ORDER {
            self.note_partial_ack(advanced);
        }
        if advanced {
            self.check_end(now, out);
        }
    }

    /// Segments in flight: in order, all that are outstanding.
    #[inline(always)]
    pub(super) fn flight<const IN_ORDER: bool>(&self) -> u32 {
        if IN_ORDER {
            self.board.outstanding()
        } else {
            self.board.in_flight()
        }
    }

    /// Segments for which an ACK may let the window grow, and whether it acknowledges new data: those delivered (RFC 3465
    /// section 2), or without byte counting one for each ACK of new data (RFC 2581 section 3.1), be it a part of a segment.
    #[inline(always)]
    fn growth(&self, packet: &Packet, delivered: u32, advanced: bool) -> (u32, bool) {
        if self.tcp.byte_counting {
            return (delivered, advanced);
        }
        let acks_new_data = advanced || packet.flags.part() > 0;
        (u32::from(acks_new_data), acks_new_data)
    }

    /// True if all was and is in order, so that the ACK only delivers.
    #[inline]
    fn is_in_order(&self, packet: &Packet) -> bool {
        self.ca_state == CaState::Open && self.board.is_clean() && !packet.flags.has_dsack()
    }

    #[cold]
    fn process_dsack(&mut self, blocks: Option<&Blocks>, out: &mut impl Outlet) {
        let block = blocks.and_then(|blocks| blocks.as_slice().first());
        if let Some(&(sequence, _)) = block {
            self.on_dsack(sequence, out);
        }
    }

    /// Deliver segments that were all sent once, while nothing is SACKed or lost.
    #[inline(always)]
    fn deliver_in_order(&mut self, ack: u64) -> Delivery {
        let mut delivery = Delivery::default();
        self.board.acknowledge_in_order(ack, &mut delivery);
        self.rates.deliver(delivery.segments);
        delivery
    }

    #[inline]
    pub(super) fn take_delivery(
        &mut self,
        packet: &Packet,
        blocks: Option<&Blocks>,
        (advanced, is_update): (bool, bool),
        now: Time,
    ) -> Delivery {
        let mut delivery = Delivery::default();
        if blocks.is_some() || !self.board.is_clean() {
            let echo = self.tcp.timestamps.then_some(packet.timestamp);
            delivery.rack_update = Some(RackUpdate::new(now.since(self.rtt.min_rtt()), echo));
        }
        let outstanding = self.board.outstanding();
        if advanced {
            self.board.acknowledge(packet.number(), &mut delivery);
        }
        if self.tcp.sack {
            if let Some(blocks) = blocks {
                for &block in &blocks.as_slice()[usize::from(packet.flags.has_dsack())..] {
                    self.board.sack(block, &mut delivery);
                }
            }
        } else if advanced
            || (!is_update
                && (self.board.sacked > 0 || packet.number() == self.board.unacknowledged))
        {
            self.count_duplicates(&mut delivery, advanced, outstanding);
        }
        self.rates.deliver(delivery.segments);
        delivery
    }

    /// Count a duplicate ACK as one delivered segment without SACK; a cumulative ACK then delivers
    /// the segments that duplicates before it have not counted.
    pub(super) fn count_duplicates(
        &mut self,
        delivery: &mut Delivery,
        advanced: bool,
        outstanding: u32,
    ) {
        if advanced {
            let before = self.board.sacked;
            self.board.forget_duplicates(delivery.segments);
            if matches!(
                self.ca_state,
                CaState::Open | CaState::Disorder | CaState::Cwr
            ) {
                // RFC 5681 section 3.2 counts duplicates of one and the same ACK.
                self.board.clear_duplicates();
            }
            delivery.segments = delivery.segments.saturating_sub(before).max(1);
        } else if outstanding > 0 {
            let before = self.board.sacked;
            self.board.count_duplicate();
            delivery.segments += self.board.sacked - before;
        }
    }

    /// Take the RTT sample for the timer from the oldest delivered segment (so that it includes the
    /// receiver's delay, RFC 6298 section 3 with Karn's rule), else from the echoed timestamp, whose clock
    /// ticks each millisecond (RFC 7323 section 5.4); returns the sample for the controller, from the newest one,
    /// and of those SACKed if there are any (Linux).
    #[inline(always)]
    pub(super) fn measure_rtt(
        &mut self,
        delivery: &Delivery,
        packet: &Packet,
        advanced: bool,
        now: Time,
    ) -> Option<Time> {
        let cumulative = if delivery.retransmitted {
            None
        } else {
            delivery.oldest
        };
        let oldest = cumulative.or(delivery.oldest_sacked);
        let echoed = || {
            let known = self.tcp.timestamps && advanced;
            known.then(|| in_ticks(packet.timestamp, now))
        };
        let sample = oldest.map(|sent| now.since(sent)).or_else(echoed);
        let times_one = self.times_one_segment();
        let timed = if times_one {
            self.timed.take(self.board.unacknowledged, now)
        } else {
            sample
        };
        let sample = sample?;
        let newest = delivery
            .newest_sacked
            .or_else(|| cumulative.and(delivery.newest));
        let rtt = newest.map_or(sample, |sent| now.since(sent));
        self.rtt.observe_minimum(now, rtt);
        if times_one || self.tcp.rtt_tick > Time::ZERO {
            self.rtt.smooth_exact(sample);
        }
        if let Some(timed) = timed {
            self.rtt
                .sample(timed, self.board.next, self.board.unacknowledged);
        }
        Some(rtt)
    }

    /// True if the timeout's samples are those of one segment at a time.
    #[inline]
    pub(super) fn times_one_segment(&self) -> bool {
        self.tcp.rtt_sampling == RttSampling::OneAtATime && !self.tcp.timestamps
    }

    /// Delivery rate between the transmission of the newest delivered segment and now; `None` over less than an RTT.
    #[inline]
    fn measure_rate(&mut self, delivery: &Delivery, now: Time) -> Option<Rate> {
        let latest = delivery.latest?;
        let min_rtt = self.rtt.min_rtt();
        let (segments, interval) = self.rates.sample(&latest, now);
        if interval < min_rtt || interval == Time::ZERO {
            return None;
        }
        let bytes = f64::from(segments) * f64::from(self.tcp.mss_bytes);
        Some(Rate::of(bytes, interval))
    }
}

/// Difference of two times on the timestamp clock; at least a tick.
fn in_ticks(from: Time, to: Time) -> Time {
    let ticks = timestamp(to) - timestamp(from);
    Time::from_picoseconds(ticks.max(1) * TIMESTAMP_TICK.picoseconds())
}
