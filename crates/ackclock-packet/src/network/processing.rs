//! How long hosts take for the packets that reach them, before their TCP sees them.
//!
//! Interrupts, softirqs and the scheduler make it, and it is never quite the same twice. Without it, flows of the same
//! RTT behind clocked links stay in step for ever, and who loses hangs on picoseconds (S. Floyd, V. Jacobson: Traffic
//! phase effects in packet-switched gateways, CCR 21(2), 1991).
//!
//! It is a delay and no server: packets that come close together are ready together, as behind a network card that
//! interrupts once for several, and a host is never what limits a flow. None overtakes another.

use ackclock_plan::FlowPlan;
use ackclock_traffic::{host_stream, Duration};
use ackclock_units::Time;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

/// Of draws that are longer, this is taken: a law may have no longest.
const LONGEST: Time = Time::from_milliseconds(1000);

/// The hosts of the flows under way, where they take time.
#[derive(Default)]
pub struct Processing {
    seed: u64,
    /// By place; no longer than the last that needed it.
    hosts: Vec<Option<Box<Hosts>>>,
}

/// What is drawn for each packet.
#[derive(Clone, Copy)]
enum Law {
    /// Uniform on so many picoseconds from `least` on, which is the cheapest.
    Even { least: Time, span: u64 },
    /// Another.
    Other(Duration),
}

impl Law {
    fn new(law: Duration) -> Law {
        let (from_s, to_s) = match law {
            Duration::Fixed { s } => (s, s),
            Duration::Uniform { from_s, to_s } => (from_s, to_s),
            other => return Law::Other(other),
        };
        let (least, most) = (Time::from_seconds(from_s), Time::from_seconds(to_s));
        Law::Even {
            least,
            span: most.since(least).picoseconds(),
        }
    }

    #[inline]
    fn draw(&self, random: &mut Pcg64Mcg) -> Time {
        match self {
            Law::Even { least, span } => {
                let share = u128::from(random.next_u64());
                *least + Time::from_picoseconds(((share * u128::from(*span)) >> 64) as u64)
            }
            Law::Other(law) => drawn(law, random),
        }
    }
}

/// Apart, so that the cheapest law does not pay for the others.
#[cold]
fn drawn(law: &Duration, random: &mut Pcg64Mcg) -> Time {
    law.draw(random).min(LONGEST)
}

/// The two hosts of a flow: that of its sender, that of its receiver.
type Hosts = [Host; 2];

/// The host of one end.
struct Host {
    law: Law,
    random: Pcg64Mcg,
    /// When the last packet was ready.
    last: Time,
}

impl Processing {
    /// That of a run.
    pub fn new(seed: u64) -> Processing {
        Processing {
            seed,
            hosts: Vec::new(),
        }
    }

    /// A flow begins in a place.
    pub fn open(&mut self, place: usize, number: u32, plan: &FlowPlan) {
        let Some(law) = plan.tcp.processing else {
            return self.close(place);
        };
        if place >= self.hosts.len() {
            self.hosts.resize_with(place + 1, || None);
        }
        let seed = self.seed;
        self.hosts[place] = Some(Box::new([0, 1].map(|end| Host {
            law: Law::new(law),
            random: host_stream(seed, u64::from(number), end),
            last: Time::ZERO,
        })));
    }

    /// The flow in a place is over.
    pub fn close(&mut self, place: usize) {
        if let Some(hosts) = self.hosts.get_mut(place) {
            *hosts = None;
        }
    }

    /// Whether the hosts of the flow in a place take time.
    #[inline(always)]
    pub fn takes_time(&self, place: usize) -> bool {
        matches!(self.hosts.get(place), Some(Some(_)))
    }

    /// When the packet that reaches its receiver (`forward`) or its sender at `arrival` is ready for the TCP there.
    #[inline(always)]
    pub fn ready(&mut self, place: usize, forward: bool, arrival: Time) -> Time {
        if self.hosts.is_empty() {
            return arrival;
        }
        self.processed(place, forward, arrival)
    }

    /// Apart, so that packets of hosts that take no time do not pay for the draws.
    #[inline(never)]
    fn processed(&mut self, place: usize, forward: bool, arrival: Time) -> Time {
        match self.hosts.get_mut(place) {
            Some(Some(hosts)) => hosts[usize::from(forward)].ready(arrival),
            _ => arrival,
        }
    }
}

impl Host {
    #[inline]
    fn ready(&mut self, arrival: Time) -> Time {
        self.last = self.last.max(arrival + self.law.draw(&mut self.random));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Duration = Duration::Uniform {
        from_s: 0.0,
        to_s: 1e-3,
    };

    fn host(seed: u64, end: u64) -> Host {
        Host {
            law: Law::new(LAW),
            random: host_stream(seed, 7, end),
            last: Time::ZERO,
        }
    }

    /// When packets that come every 100 µs are ready.
    fn ready(mut host: Host) -> Vec<Time> {
        let arrivals = (0..1000).map(|number| Time::from_microseconds(100 * number));
        arrivals.map(|arrival| host.ready(arrival)).collect()
    }

    #[test]
    fn packets_wait_and_do_not_overtake() {
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
    fn other_laws_end_at_a_second() {
        let mut random = host_stream(1, 7, 0);
        let heavy = Law::new(Duration::Pareto {
            shape: 0.1,
            least_s: 1e-3,
        });
        let draws: Vec<_> = (0..1000).map(|_| heavy.draw(&mut random)).collect();
        assert_eq!(draws.iter().max(), Some(&LONGEST));
        assert!(draws.iter().min() < Some(&Time::from_milliseconds(2)));
    }

    #[test]
    fn each_seed_and_each_end_has_draws_of_its_own() {
        assert_eq!(ready(host(1, 0)), ready(host(1, 0)));
        assert_ne!(ready(host(1, 0)), ready(host(2, 0)));
        assert_ne!(ready(host(1, 0)), ready(host(1, 1)));
    }
}
