//! Losses without synchronisation: dW/dt = … − W b λ, λ = A p (Misra, Gong, Towsley 2000).
//!
//! With a full queue, p = 1 − C/AR depends on the windows that it reduces, and at 10 Gb/s it converges within
//! microseconds. So each step is split: the windows grow, then p is found for which the windows that it leaves send
//! C / (1 − p). Over a step of h, dW/dt = −b p W²/R takes W to W / (1 + b p A h), exactly.

use super::network::{Network, Regime, State};

/// Largest number of Newton's steps; from the left of a convex function the iterates rise to the root.
const MAX_STEPS: u32 = 50;
/// p is found to this.
const TOLERANCE: f64 = 1e-14;

/// State of the losses between steps.
pub struct Smooth {
    /// Expected losses of a flow since its law last processed one.
    expected: Vec<f64>,
    /// Time of the last loss that the law processed, by flow.
    last_loss_s: Vec<f64>,
}

impl Smooth {
    /// Before the first loss.
    pub fn new(flows: usize) -> Smooth {
        Smooth {
            expected: vec![0.0; flows],
            last_loss_s: vec![f64::NEG_INFINITY; flows],
        }
    }

    /// Reduce the windows by the losses of a step that ends at `now_s`.
    pub fn lose(&mut self, network: &mut Network, state: &mut State, step_s: f64, now_s: f64) {
        for link in 0..network.links.len() {
            let flows = Losing::of(link, network, state, step_s, now_s);
            let overflow = if network.regimes[link] == Regime::Full {
                flows.overflow(network.links[link].rate_p_s)
            } else {
                0.0
            };
            let p = overflow.max(network.early[link]);
            if p > 0.0 {
                self.reduce(&flows, p, network, state, step_s, now_s);
            }
        }
    }

    fn reduce(
        &mut self,
        flows: &Losing,
        p: f64,
        network: &mut Network,
        state: &mut State,
        step_s: f64,
        now_s: f64,
    ) {
        for &(flow, rate_p_s, strength) in &flows.0 {
            state.windows_p[flow] /= 1.0 + strength * p;
            self.expected[flow] += p * rate_p_s * step_s;
            let at = network.moment(flow, state, now_s);
            if self.expected[flow] >= 1.0 && now_s - self.last_loss_s[flow] >= at.rtt_s {
                self.expected[flow] = 0.0;
                self.last_loss_s[flow] = now_s;
                network.flows[flow].law.lose(&at, at.window_p);
                network.flows[flow].slow_start = false;
            }
        }
    }
}

/// The flows through a queue: index, A, and b A h, the strength with which p reduces them.
struct Losing(Vec<(usize, f64, f64)>);

impl Losing {
    fn of(link: usize, network: &Network, state: &State, step_s: f64, now_s: f64) -> Losing {
        let members = network.links[link].members.iter();
        let active = members.filter(|&&flow| network.flows[flow].active);
        let losing = |&flow: &usize| {
            let at = network.moment(flow, state, now_s);
            let rate_p_s = at.window_p / at.rtt_s;
            let b = network.flows[flow].law.share_removed(&at);
            (flow, rate_p_s, b * rate_p_s * step_s)
        };
        Losing(active.map(losing).collect())
    }

    /// p for which (1 − p) Σ A/(1 + b p A h) = C; 0 if the flows send no more than C.
    fn overflow(&self, capacity_p_s: f64) -> f64 {
        let mut p = 0.0;
        for _ in 0..MAX_STEPS {
            let (sum, slope) = self.sum(p);
            let excess = (1.0 - p) * sum - capacity_p_s;
            let step = excess / (sum - (1.0 - p) * slope);
            if excess.is_nan() || step <= TOLERANCE {
                break;
            }
            p += step;
        }
        p.clamp(0.0, 1.0)
    }

    /// Σ A/(1 + b p A h) and its derivative by p.
    fn sum(&self, p: f64) -> (f64, f64) {
        self.0
            .iter()
            .fold((0.0, 0.0), |(sum, slope), &(_, rate, strength)| {
                let left = rate / (1.0 + strength * p);
                (sum + left, slope - left * strength / (1.0 + strength * p))
            })
    }
}
