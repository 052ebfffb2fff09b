//! What a sender lets go while losses are repaired: proportional rate reduction (RFC 6937), as Linux refines it.

use ackclock_congestion::Ack;

/// A reduction, and the pipe that it leads to.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    target: u32,
    prior_window: u32,
    delivered: u64,
    sent: u64,
    pipe: u32,
}

impl Reduction {
    /// From one window to another; nothing has left yet of what the first acknowledgement found.
    pub fn new(prior_window: f64, target: f64, prior_in_flight: u32) -> Self {
        Self {
            target: target as u32,
            prior_window: (prior_window as u32).max(1),
            delivered: 0,
            sent: 0,
            pipe: prior_in_flight,
        }
    }

    /// The pipe once an acknowledgement has come.
    #[inline]
    pub fn follow(&mut self, ack: &Ack) -> u32 {
        let gone = ack.prior_in_flight.saturating_sub(ack.in_flight);
        self.pipe = self.pipe.saturating_sub(gone.max(ack.newly_acked));
        if ack.newly_acked > 0 {
            self.delivered += u64::from(ack.newly_acked);
            let sent = self.allowance(ack).max(u32::from(self.sent == 0));
            self.sent += u64::from(sent);
            self.pipe += sent;
        }
        self.pipe
    }

    fn allowance(&self, ack: &Ack) -> u32 {
        let Some(below) = self.target.checked_sub(self.pipe) else {
            let share = self.delivered * u64::from(self.target);
            let due = share.div_ceil(u64::from(self.prior_window));
            return due.saturating_sub(self.sent) as u32;
        };
        let conserved = self.delivered.saturating_sub(self.sent) as u32;
        let progress = ack.advanced && ack.newly_lost == 0;
        below.min(conserved.max(ack.newly_acked) + u32::from(progress))
    }
}
