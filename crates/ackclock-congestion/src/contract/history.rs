//! Random histories of a connection: ACKs, losses, marks, timeouts and idle times whose numbers fit together.

use ackclock_core::{Rate, Time};
use rand_core::RngCore;

use crate::{Ack, Controller, EcnFeedback, Loss, Opening, PriorWindow, Restart};

/// Payload of a segment.
pub const MSS_BYTES: u32 = 1448;

/// A step of a history; times in microseconds.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Segments sent and not limited by the window, if false.
    Send(u32, bool),
    /// An ACK: time since the step before, segments, queueing delay; whether it advances, and is marked.
    Ack(u32, u32, u32, bool, bool),
    /// Fast recovery begins, for a loss or for marks.
    Loss(bool),
    /// A loss is detected during a reaction to marks.
    LossAfterMark,
    /// Fast recovery is over.
    Recovered,
    /// The retransmission timer expires.
    Timeout,
    /// The retransmission timer expires again, backed off.
    RepeatedTimeout,
    /// The last reduction turns out to be spurious.
    Undo,
    /// From now on out-of-order deliveries may raise the window, if true.
    Reordering(bool),
    /// The application is idle for this time.
    Idle(u32),
}

impl Step {
    /// A step at random: ACKs most of all, as in a connection.
    pub fn random(random: &mut impl RngCore) -> Step {
        let mut below = |end: u32| random.next_u32() % end;
        match below(28) {
            0..4 => Step::Send(1 + below(99), below(2) == 0),
            4..20 => {
                let us = [50, 10_000, 2_000_000][below(3) as usize];
                let queueing_us = [1, 2_000, 500_000][below(3) as usize];
                let (advances, marked) = (below(10) > 0, below(10) == 0);
                Step::Ack(below(us), below(60), below(queueing_us), advances, marked)
            }
            20 => Step::Loss(below(2) == 0),
            21 => Step::Recovered,
            22 => Step::Timeout,
            23 => Step::Idle(1 + below(100_000_000)),
            24 => Step::LossAfterMark,
            25 => Step::RepeatedTimeout,
            26 => Step::Undo,
            _ => Step::Reordering(below(2) == 0),
        }
    }
}

/// The sender's side of a history.
#[derive(Clone, Debug)]
pub struct History {
    now: Time,
    base_rtt: Time,
    srtt: Time,
    min_rtt: Time,
    next: u64,
    unacknowledged: u64,
    delivered: u64,
    recovering: bool,
    in_loss: bool,
    window_limited: bool,
    /// The episode is a reaction to marks.
    marking: bool,
    uses_ecn: bool,
    reorders: bool,
    /// Losses that the next ACK reports.
    newly_lost: u32,
    /// The window before the last reduction, until it is undone.
    prior: Option<PriorWindow>,
}

impl History {
    /// A connection over a path of so many microseconds.
    pub fn new(base_rtt_us: u64) -> History {
        History {
            now: Time::from_milliseconds(10),
            base_rtt: Time::from_microseconds(base_rtt_us),
            srtt: Time::ZERO,
            min_rtt: Time::NEVER,
            next: 0,
            unacknowledged: 0,
            delivered: 0,
            recovering: false,
            in_loss: false,
            window_limited: true,
            marking: false,
            uses_ecn: false,
            reorders: false,
            newly_lost: 0,
            prior: None,
        }
    }

    /// The connection opens.
    pub fn open(&mut self, controller: &mut dyn Controller, seed: u64) {
        self.srtt = self.base_rtt;
        self.min_rtt = self.base_rtt;
        controller.on_established(&Opening {
            now: self.now,
            srtt: self.srtt,
            mss_bytes: MSS_BYTES,
            seed,
        });
    }

    /// Report the controller of a step.
    pub fn apply(&mut self, step: Step, controller: &mut dyn Controller) {
        match step {
            Step::Send(segments, limited) => {
                self.next += u64::from(segments);
                self.window_limited = limited;
            }
            Step::Ack(after_us, segments, queueing_us, advances, marked) => {
                let ack = self.ack(after_us, segments, queueing_us, advances, marked);
                self.uses_ecn |= marked;
                if self.uses_ecn {
                    controller.on_ecn_feedback(&EcnFeedback {
                        delivered: ack.newly_acked,
                        marked: if marked { ack.newly_acked } else { 0 },
                        next: ack.next,
                        unacknowledged: ack.unacknowledged,
                    });
                }
                controller.on_ack(&ack);
            }
            Step::Loss(marked) => self.lose(controller, marked),
            Step::LossAfterMark => {
                if self.recovering && std::mem::take(&mut self.marking) {
                    controller.on_loss_after_mark(&self.loss(false));
                }
            }
            Step::Recovered => {
                if self.recovering {
                    controller.on_recovered(self.now, None);
                }
                (self.recovering, self.in_loss) = (false, false);
            }
            Step::Timeout => {
                if !self.recovering && !self.in_loss {
                    self.prior = Some(window_of(controller));
                }
                controller.on_timeout(self.now, self.in_flight());
                (self.recovering, self.in_loss) = (false, true);
            }
            Step::RepeatedTimeout => {
                if self.in_loss {
                    controller.on_repeated_timeout();
                }
            }
            Step::Undo => {
                if let Some(prior) = self.prior.take() {
                    controller.undo(&prior);
                    (self.recovering, self.in_loss) = (false, false);
                }
            }
            Step::Reordering(reorders) => self.reorders = reorders,
            Step::Idle(us) => self.idle(us, controller),
        }
    }

    fn in_flight(&self) -> u32 {
        (self.next - self.unacknowledged) as u32
    }

    fn ack(
        &mut self,
        us: u32,
        segments: u32,
        queueing_us: u32,
        advances: bool,
        marked: bool,
    ) -> Ack {
        self.now += Time::from_microseconds(u64::from(us));
        let prior_in_flight = self.in_flight();
        let newly_acked = segments.min(prior_in_flight);
        let moved = advances && newly_acked > 0;
        if moved {
            self.unacknowledged += u64::from(newly_acked);
        }
        let prior_delivered = self.delivered.saturating_sub(u64::from(prior_in_flight));
        self.delivered += u64::from(newly_acked);
        let rtt = self.base_rtt + Time::from_microseconds(u64::from(queueing_us));
        self.srtt = self.srtt.scaled(0.875) + rtt.scaled(0.125);
        self.min_rtt = self.min_rtt.min(rtt);
        let bytes = u64::from(newly_acked) * u64::from(MSS_BYTES);
        Ack {
            now: self.now,
            newly_acked,
            newly_acked_bytes: bytes,
            may_raise_cwnd: moved || self.reorders && newly_acked > 0,
            cumulatively_acked: if moved { newly_acked } else { 0 },
            has_sack: !moved,
            window_update: false,
            rtt: (newly_acked > 0).then_some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            prior_in_flight,
            in_flight: self.in_flight(),
            delivery_rate: (newly_acked > 0).then(|| Rate::of((bytes * 3) as f64, rtt)),
            delivered: self.delivered,
            prior_delivered,
            application_limited: !self.window_limited,
            window_limited: self.window_limited,
            newly_lost: std::mem::take(&mut self.newly_lost).min(prior_in_flight),
            marked_bytes: if marked { bytes } else { 0 },
            next: self.next,
            unacknowledged: self.unacknowledged,
            recovering: self.recovering,
            in_loss: self.in_loss,
            paced: false,
            next_departure: self.now,
        }
    }

    /// One call per episode, as the sender does it.
    fn lose(&mut self, controller: &mut dyn Controller, marked: bool) {
        if self.recovering || self.in_loss {
            return;
        }
        self.recovering = true;
        self.marking = marked;
        self.prior = Some(window_of(controller));
        controller.on_loss(&self.loss(marked));
        if !marked {
            self.newly_lost = 1 + self.in_flight() / 8;
        }
    }

    fn loss(&self, marked: bool) -> Loss {
        Loss {
            now: self.now,
            in_flight: self.in_flight(),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            delivered: self.delivered,
            marked,
        }
    }

    fn idle(&mut self, us: u32, controller: &mut dyn Controller) {
        let idle_since = self.now;
        self.now += Time::from_microseconds(u64::from(us));
        self.unacknowledged = self.next;
        controller.on_restart(&Restart {
            now: self.now,
            idle_since,
            rto: self.srtt.scaled(3.0) + Time::from_milliseconds(200),
            initial_window: 10,
        });
    }
}

/// The window and threshold as the sender stores them before a reduction.
fn window_of(controller: &dyn Controller) -> PriorWindow {
    let cwnd = controller.cwnd();
    PriorWindow {
        cwnd,
        ssthresh: controller
            .ssthresh()
            .max((cwnd / 2.0).floor() + (cwnd / 4.0).floor()),
    }
}
