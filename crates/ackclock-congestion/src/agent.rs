//! A window and a pacing rate that are set from outside the engine, for agents that learn congestion control.
//!
//! No scenario names it and it has no spec: `ackclock.rl` puts it in the place of a group's CCA, and sets the window
//! between two events. The window is the agent's in every state of the sender, in recovery and after a timeout too:
//! what a loss means is for the agent to learn. ECN marks are counted, not reacted to.

use ackclock_core::{Rate, Time};
use serde::Deserialize;
use serde_json::Value;

use super::{Ack, Controller, Loss, Made, RecoveryPolicy, Variables};

/// Name in plans and datasets.
pub const NAME: &str = "agent";

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// True if the agent sets a pacing rate.
    paced: bool,
}

/// Measurements that the sender does not keep, summed over the connection.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    rtt: Time,
    rtt_samples: u32,
    marked_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Agent {
    parameters: Parameters,
    cwnd: f64,
    rate: Option<Rate>,
    sums: Sums,
}

/// Make the controller.
///
/// # Errors
/// Parameters other than `paced`.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    Ok(Box::new(Agent {
        parameters: Parameters::deserialize(parameters)?,
        cwnd: initial_window,
        rate: None,
        sums: Sums::default(),
    }))
}

impl Controller for Agent {
    fn on_ack(&mut self, ack: &Ack) {
        self.sums.marked_bytes += ack.marked_bytes;
        if let Some(rtt) = ack.rtt {
            self.sums.rtt += rtt;
            self.sums.rtt_samples += 1;
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {}

    fn set_window(&mut self, cwnd: f64, rate: Option<Rate>) -> bool {
        self.cwnd = cwnd.max(1.0);
        self.rate = rate;
        true
    }

    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// The agent has no slow start.
    fn ssthresh(&self) -> f64 {
        self.cwnd
    }

    fn recovery_policy(&self) -> RecoveryPolicy {
        RecoveryPolicy::Controller
    }

    fn requires_pacing(&self) -> bool {
        self.parameters.paced
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn variables(&self) -> Option<Variables> {
        Some(Variables {
            state: NAME,
            values: vec![
                ("rtt_sum_s", self.sums.rtt.seconds()),
                ("rtt_samples", f64::from(self.sums.rtt_samples)),
                ("marked_bytes", self.sums.marked_bytes as f64),
            ],
        })
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // set, not computed
mod tests {
    use super::super::contract::run_trials;
    use super::super::window::testing::{ack, LOSS};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_window_is_the_agents_after_losses_and_timeouts() {
        let mut agent = make(&json!({ "paced": false }), 10.0).expect("its parameters");
        assert!(agent.set_window(25.5, None));
        agent.on_loss(&LOSS);
        agent.on_timeout(Time::from_seconds(1.0), 25);
        agent.on_ack(&ack(Time::ZERO, 4));
        assert_eq!(agent.cwnd(), 25.5);
        agent.set_window(0.0, None);
        assert_eq!(agent.cwnd(), 1.0);
    }

    #[test]
    fn only_an_agents_window_can_be_set() {
        let mut reno =
            super::super::make("reno", &json!({ "slow_start": "standard" }), 10).expect("reno");
        assert!(!reno.set_window(50.0, None));
        assert_eq!(reno.cwnd(), 10.0);
    }

    #[test]
    fn the_contract_holds() {
        assert_eq!(run_trials(NAME, &json!({ "paced": true }), 20), Ok(()));
    }
}
