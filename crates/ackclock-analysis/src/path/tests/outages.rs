//! Captures that begin amid a transfer, and paths with an outage.

use super::*;

#[test]
fn a_queue_with_unknown_first_delays_is_no_shaper() {
    let (arrivals, samples) = sent(&mut Bucket::new(3e6, 0.0, 3e5), &[50; 4], 60);
    let since = |ns: i64| move |time_ns: i64| time_ns >= ns;
    let (begun, known) = (since(300_000_000), since(1_500_000_000));
    let cut: Vec<Arrival> = arrivals
        .into_iter()
        .filter(|one| begun(one.time_ns))
        .collect();
    let late: Vec<RttSample> = samples
        .into_iter()
        .filter(|one| known(one.time_ns))
        .collect();
    let path = limiter(&cut, &late);
    assert_eq!(path.limiter, Limiter::Queue, "{path:?}");
}

/// A limiter on a path that is out for four seconds.
struct Outage(Bucket);

impl Limits for Outage {
    fn arrives(&mut self, time_ns: i64) -> Option<i64> {
        let is_out = (20_000_000_000..24_000_000_000).contains(&time_ns);
        (!is_out).then(|| self.0.arrives(time_ns)).flatten()
    }
}

#[test]
fn losses_in_an_outage_are_no_policers() {
    let path = describe(&mut Outage(Bucket::new(8e6, 0.0, 1e6)), &[40]);
    assert_eq!(path.limiter, Limiter::Queue, "{path:?}");
    assert!(path.evidence.losses < MIN_LOSSES, "{path:?}");
}
