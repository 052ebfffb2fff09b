//! Observation of the stack's congestion controllers: each call is passed on and counted.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ackclock_core::Time;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use noq_proto::RttEstimator;

use crate::clock;
use crate::engine_controller::EngineController;

/// State of a connection's transport at its sender. What a stack does not show is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transport {
    /// Congestion window.
    pub cwnd_bytes: Option<u64>,
    /// Slow start threshold; none before the first reduction.
    pub ssthresh_bytes: Option<u64>,
    /// UDP payload of a full datagram.
    pub datagram_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Time>,
    /// Bytes in flight.
    pub in_flight_bytes: Option<u64>,
    /// Packets declared lost, without probes of the path MTU. What they carried is sent again.
    pub lost_packets: Option<u64>,
    /// Periods of recovery (RFC 9002 section 7.3.2), by losses or by marks.
    pub recoveries: Option<u32>,
    /// Times at which persistent congestion was declared (RFC 9002 section 7.6), QUIC's counterpart of a timeout that
    /// collapses the window.
    pub persistent_congestions: Option<u32>,
    /// When the handshake was complete.
    pub established: Option<Time>,
    /// When the last byte was acknowledged.
    pub finished: Option<Time>,
    /// True if the connection is closed or lost.
    pub is_closed: bool,
}

impl Transport {
    /// True from the end of the handshake until the connection is closed.
    pub fn is_active(&self) -> bool {
        self.established.is_some() && !self.is_closed
    }

    /// A number of bytes in full datagrams, the unit of windows.
    pub fn datagrams(&self, bytes: Option<u64>) -> Option<f64> {
        bytes.map(|bytes| bytes as f64 / self.datagram_bytes as f64)
    }
}

/// A change in the state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The handshake is complete.
    Established,
    /// A period of recovery begins after a loss.
    Recovery,
    /// A period of recovery begins after a mark.
    MarkReaction,
    /// Persistent congestion is declared.
    PersistentCongestion,
    /// A reduction proved spurious and is undone.
    Undo,
    /// The last byte is acknowledged.
    Finished,
}

/// Counts of a controller, and its changes since they were last taken.
#[derive(Debug, Default)]
struct Observations {
    in_flight_bytes: u64,
    lost_packets: u64,
    recoveries: u32,
    persistent_congestions: u32,
    recovery_start: Option<Instant>,
    changes: Vec<(Time, Change)>,
}

/// Observations that an endpoint shares with its controller.
#[derive(Clone, Debug, Default)]
pub struct Observer(Arc<Mutex<Observations>>);

impl Observer {
    fn lock(&self) -> MutexGuard<'_, Observations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Record a change of the connection itself.
    pub fn record(&self, now: Time, change: Change) {
        self.lock().changes.push((now, change));
    }

    /// Take the changes since the last call.
    pub fn take_changes(&self) -> Vec<(Time, Change)> {
        std::mem::take(&mut self.lock().changes)
    }

    /// Fill in the counts.
    pub fn write(&self, transport: &mut Transport) {
        let observed = self.lock();
        transport.in_flight_bytes = Some(observed.in_flight_bytes);
        transport.lost_packets = Some(observed.lost_packets);
        transport.recoveries = Some(observed.recoveries);
        transport.persistent_congestions = Some(observed.persistent_congestions);
    }
}

impl Observations {
    /// A packet sent at `sent` was lost or marked. Those that were sent before the period began are of it.
    fn on_congestion(&mut self, now: Instant, sent: Instant, is_persistent: bool, is_ecn: bool) {
        if self.recovery_start.is_none_or(|start| sent > start) {
            self.recovery_start = Some(now);
            self.recoveries += 1;
            let change = if is_ecn {
                Change::MarkReaction
            } else {
                Change::Recovery
            };
            self.changes.push((clock::time(now), change));
        }
        if is_persistent {
            self.persistent_congestions += 1;
            let change = Change::PersistentCongestion;
            self.changes.push((clock::time(now), change));
        }
    }
}

/// Maker of observed controllers.
pub struct ObservedFactory {
    controllers: Arc<dyn ControllerFactory + Send + Sync>,
    observer: Observer,
}

impl ObservedFactory {
    /// The controllers of a factory, observed.
    pub fn new(
        controllers: Arc<dyn ControllerFactory + Send + Sync>,
        observer: Observer,
    ) -> ObservedFactory {
        ObservedFactory {
            controllers,
            observer,
        }
    }
}

impl ControllerFactory for ObservedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Observed {
            controller: Arc::clone(&self.controllers).build(now, current_mtu),
            observer: self.observer.clone(),
        })
    }
}

/// A controller whose calls are counted.
#[derive(Debug)]
struct Observed {
    controller: Box<dyn Controller>,
    observer: Observer,
}

impl Controller for Observed {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.controller.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.observer.lock().in_flight_bytes += u64::from(bytes);
        self.controller.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.controller.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.controller
            .on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.observer.lock().in_flight_bytes = in_flight;
        self.controller
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        self.observer
            .lock()
            .on_congestion(now, sent, is_persistent_congestion, is_ecn);
        self.controller.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        let mut observed = self.observer.lock();
        observed.lost_packets += 1;
        observed.in_flight_bytes = observed.in_flight_bytes.saturating_sub(lost_bytes.into());
        drop(observed);
        self.controller.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        let mut observed = self.observer.lock();
        if let Some(start) = observed.recovery_start {
            let change = (clock::time(start), Change::Undo);
            observed.changes.push(change);
        }
        drop(observed);
        self.controller.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.controller.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, requested_max_ack_delay: Duration) {
        self.controller
            .on_ack_frequency_update(threshold, requested_max_ack_delay);
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.controller.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Observed {
            controller: self.controller.clone_box(),
            observer: self.observer.clone(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.controller.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.controller.into_any()
    }
}

impl ControllerFactory for EngineController {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Self::clone(&self))
    }
}

impl Controller for EngineController {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, _pn: u64) {
        self.on_sent(clock::time(now), bytes.into());
    }

    fn on_cwnd_limited(&mut self) {
        self.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        _now: Instant,
        sent: Instant,
        bytes: u64,
        _pn: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.on_packet_acked(clock::time(sent), bytes, clock::span(rtt.get()));
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.on_end_acks(clock::time(now), in_flight, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let (now, sent) = (clock::time(now), clock::time(sent));
        self.on_congestion(now, sent, is_persistent_congestion, is_ecn, lost_bytes);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.on_spurious_congestion();
    }

    /// A segment is the largest payload from the beginning.
    fn on_mtu_update(&mut self, _new_mtu: u16) {}

    fn window(&self) -> u64 {
        self.window_bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window_bytes();
        metrics.ssthresh = self.ssthresh_bytes();
        metrics.pacing_rate = self
            .pacing_rate()
            .map(|rate| rate.bytes_per_second() as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.window_bytes()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
