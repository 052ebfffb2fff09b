//! Host processing delay: the time from a packet's arrival at a host to its processing by TCP.
//!
//! Interrupts, softirqs and the scheduler cause it, and it varies from packet to packet. Without it, flows of the same
//! RTT behind clocked links stay in phase for ever, and picoseconds decide which one loses (S. Floyd, V. Jacobson:
//! Traffic phase effects in packet-switched gateways, CCR 21(2), 1991).
//!
//! It is a delay, not a server: packets that arrive close together are ready together, as behind a network card that
//! interrupts once for several, so a host never limits a flow. Packets keep their order.

use ackclock_core::Time;
use ackclock_plan::FlowPlan;
use ackclock_traffic::{host_stream, Duration};
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

/// Upper bound of a draw: some distributions have none.
const MAX_DELAY: Time = Time::from_milliseconds(1000);

/// Distribution of the delay.
#[derive(Clone, Copy, Debug)]
enum Law {
    /// Uniform over `span` picoseconds from the minimum on; the cheapest to draw.
    Uniform { least_ps: u64, span: u64 },
    /// Any other.
    General(Duration),
}

impl Law {
    fn new(law: Duration) -> Law {
        let (from_s, to_s) = match law {
            Duration::Fixed { s } => (s, s),
            Duration::Uniform { from_s, to_s } => (from_s, to_s),
            other => return Law::General(other),
        };
        let (least, most) = (Time::from_seconds(from_s), Time::from_seconds(to_s));
        Law::Uniform {
            least_ps: least.picoseconds(),
            span: most.since(least).picoseconds(),
        }
    }
}

/// Delays at the two hosts of a flow.
#[derive(Debug)]
pub struct HostDelays {
    /// Delay at the receiver, of data.
    pub receiver: HostDelay,
    /// Delay at the sender, of ACKs.
    pub sender: HostDelay,
}

/// Processing delay at one host.
#[derive(Debug)]
pub struct HostDelay {
    random: Pcg64Mcg,
    law: Law,
    /// Delay of the next packet, drawn in advance to keep the draw off the critical path.
    next_delay: Time,
    /// Time at which the last packet was ready.
    last: Time,
}

impl HostDelays {
    /// Delays of a flow; `None` if the plan has no processing delay.
    pub fn of(plan: &FlowPlan, number: u32, seed: u64) -> Option<Box<HostDelays>> {
        let law = plan.tcp.processing?;
        let host = |end| HostDelay::new(law, host_stream(seed, u64::from(number), end));
        Some(Box::new(HostDelays {
            sender: host(0),
            receiver: host(1),
        }))
    }
}

impl HostDelay {
    fn new(law: Duration, random: Pcg64Mcg) -> HostDelay {
        let mut host = HostDelay {
            random,
            law: Law::new(law),
            next_delay: Time::ZERO,
            last: Time::ZERO,
        };
        host.draw_next();
        host
    }

    /// Return when the packet that arrives at `arrival` is ready for TCP.
    #[inline(always)]
    pub fn ready(&mut self, arrival: Time) -> Time {
        let ready = self.last.max(arrival + self.next_delay);
        self.last = ready;
        self.draw_next();
        ready
    }

    #[inline(always)]
    fn draw_next(&mut self) {
        let Law::Uniform { least_ps, span } = self.law else {
            return self.draw_general();
        };
        let share = u128::from(self.random.next_u64());
        self.next_delay =
            Time::from_picoseconds(least_ps + ((share * u128::from(span)) >> 64) as u64);
    }

    /// Out of line, so that the uniform distribution does not pay for the others.
    #[cold]
    #[inline(never)]
    fn draw_general(&mut self) {
        if let Law::General(law) = &self.law {
            self.next_delay = law.draw(&mut self.random).min(MAX_DELAY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Duration = Duration::Uniform {
        from_s: 0.0,
        to_s: 1e-3,
    };

    fn host(seed: u64, end: u64) -> HostDelay {
        HostDelay::new(LAW, host_stream(seed, 7, end))
    }

    /// When packets that come every 100 µs are ready.
    fn ready(mut host: HostDelay) -> Vec<Time> {
        let arrivals = (0..1000).map(|number| Time::from_microseconds(100 * number));
        arrivals.map(|arrival| host.ready(arrival)).collect()
    }

    #[test]
    fn packets_are_delayed_in_order() {
        let found = ready(host(1, 0));
        assert!(found.is_sorted());
        let waits = (0..).zip(&found).map(|(number, &time)| {
            assert!(time >= Time::from_microseconds(100 * number));
            time.since(Time::from_microseconds(100 * number))
        });
        let longest = waits.max().unwrap_or_default();
        assert!(longest > Time::from_microseconds(900) && longest < Time::from_microseconds(1000));
    }

    #[test]
    fn other_distributions_are_capped_at_a_second() {
        let law = Duration::Pareto {
            shape: 0.1,
            least_s: 1e-3,
        };
        let random = host_stream(1, 7, 0);
        let mut host = HostDelay::new(law, random);
        let draws: Vec<_> = (0..1000)
            .map(|_| {
                host.last = Time::ZERO;
                host.ready(Time::ZERO)
            })
            .collect();
        assert_eq!(draws.iter().max(), Some(&MAX_DELAY));
        assert!(draws.iter().min() < Some(&Time::from_milliseconds(2)));
    }

    #[test]
    fn seeds_and_ends_have_independent_draws() {
        assert_eq!(ready(host(1, 0)), ready(host(1, 0)));
        assert_ne!(ready(host(1, 0)), ready(host(2, 0)));
        assert_ne!(ready(host(1, 0)), ready(host(1, 1)));
    }
}
