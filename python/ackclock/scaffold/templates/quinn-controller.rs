//! The congestion control of $title: additive increase of a datagram per round trip, and multiplicative decrease.
//!
//! Replace the formulas by yours. `options = "beta=0.7"` in the scenario sets the share of the window that a loss leaves;
//! RFC 9002 has 0.5, the default. A CE mark counts as a loss (RFC 9002 section 7.1).

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

/// Parameters of all connections.
#[derive(Clone, Debug)]
pub struct Config {
    /// Initial congestion window in bytes.
    pub initial_window: u64,
    /// Share of the window that a loss leaves.
    pub beta: f64,
}

impl Config {
    /// Read `options`; none if they are not understood.
    pub fn new(initial_window: u64, options: &str) -> Option<Config> {
        let beta = match options.strip_prefix("beta=") {
            Some(text) => text
                .parse()
                .ok()
                .filter(|beta| (0.1..=0.99).contains(beta))?,
            None if options.is_empty() => 0.5,
            None => return None,
        };
        Some(Config {
            initial_window,
            beta,
        })
    }
}

impl ControllerFactory for Config {
    fn build(self: Arc<Self>, _now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Window {
            window: self.initial_window,
            config: self,
            mtu: mtu.into(),
            ssthresh: u64::MAX,
            acked: 0,
            recovery_start: None,
        })
    }
}

/// The window of one connection, in bytes.
#[derive(Clone, Debug)]
struct Window {
    config: Arc<Config>,
    mtu: u64,
    window: u64,
    ssthresh: u64,
    /// Bytes acknowledged since the window has grown.
    acked: u64,
    /// Losses of packets that were sent before belong to one recovery period (RFC 9002 section 7.3.2).
    recovery_start: Option<Instant>,
}

impl Window {
    fn is_in_recovery(&self, sent: Instant) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }
}

impl Controller for Window {
    fn on_ack(
        &mut self,
        _now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        if app_limited || self.is_in_recovery(sent) {
            return;
        }
        if self.window < self.ssthresh {
            self.window += bytes;
            return;
        }
        self.acked += bytes;
        if self.acked >= self.window {
            self.acked -= self.window;
            self.window += self.mtu;
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        _lost_bytes: u64,
    ) {
        if self.is_in_recovery(sent) {
            return;
        }
        self.recovery_start = Some(now);
        self.acked = 0;
        self.ssthresh = ((self.window as f64 * self.config.beta) as u64).max(2 * self.mtu);
        self.window = if is_persistent_congestion {
            2 * self.mtu
        } else {
            self.ssthresh
        };
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu.into();
        self.window = self.window.max(2 * self.mtu);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics.ssthresh = Some(self.ssthresh);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.config.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
