//! Many runs in one call, over the cores; their results do not depend on the number of threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{run, Outcome, Plan, PlanError};

/// Interval of checks for an interruption.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Run the plans with their seeds on so many threads; outcomes come in the order of the plans.
///
/// `proceed` is called on the calling thread with the number of runs that are done, at least every 50 ms; if
/// it says no, no further run is begun and the result is `None`.
///
/// # Errors
/// The first plan, in their order, that cannot be run.
///
/// # Panics
/// A run did.
pub fn run_many(
    plans: &[(Plan, u64)],
    threads: usize,
    mut proceed: impl FnMut(usize) -> bool,
) -> Result<Option<Vec<Outcome>>, PlanError> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let mut found: Vec<Option<Result<Outcome, PlanError>>> = plans.iter().map(|_| None).collect();
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads.clamp(1, plans.len().max(1)) {
            let sender = sender.clone();
            let (next, stop) = (&next, &stop);
            scope.spawn(move || loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) || number >= plans.len() {
                    break;
                }
                let (plan, seed) = &plans[number];
                if sender.send((number, run(plan, *seed))).is_err() {
                    break;
                }
            });
        }
        drop(sender);
        let mut done = 0;
        loop {
            match receiver.recv_timeout(POLL_INTERVAL) {
                Ok((number, outcome)) => {
                    found[number] = Some(outcome);
                    done += 1;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if !stop.load(Ordering::Relaxed) && !proceed(done) {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    let complete: Option<Vec<_>> = found.into_iter().collect();
    complete
        .map(|outcomes| outcomes.into_iter().collect())
        .transpose()
}
