//! Columns of a row that are unknown, not zero, as packets which would show them were not captured.
//!
//! A capture of one direction has no data (acknowledgements only, or the segments that open and close connections), or no
//! acknowledgements. Without its data it is unknown how often a direction lost and retransmitted segments; without
//! acknowledgements it shows retransmissions, but not why, nor which were spurious. A snap length that cuts TCP's options
//! hides the SACK blocks, and with them which copies arrived, and the SYNs' window scale.
//!
//! Of a direction that is mostly missing, as by a filter for SYN and FIN whose FIN carries data, the few segments that were
//! captured show neither what the others did nor what limited them.

use super::super::sender_view::SenderView;
use super::super::Connection;
use crate::tables::{Fate, Flows};
use ackclock_core::tables::{NONE, UNKNOWN};

impl Connection {
    /// Return the bytes that a direction sent of which the capture has none, 0 if no acknowledgement shows how many; None if
    /// its data were captured, or if it sent none.
    pub(super) fn unseen_bytes(&self, from: usize) -> Option<u64> {
        let has_data = |from: usize| self.directions[from].size.has_data();
        if has_data(from) {
            return None;
        }
        // Where the other end sends, constant acknowledgements show that nothing came back but its own; nor does a single
        // packet show that anything came.
        let is_absent = self.directions[from].is_absent()
            && !has_data(1 - from)
            && self.directions[1 - from].packets > 1;
        let bytes = self.directions[from].acknowledged_bytes();
        bytes.or(is_absent.then_some(0))
    }
}

/// Make the last row's columns unknown that depend on packets which were not captured.
pub(super) fn blank(
    connection: &Connection,
    from: usize,
    view: Option<&SenderView>,
    flows: &mut Flows,
) {
    let other = &connection.directions[1 - from];
    if let Some(bytes) = connection.unseen_bytes(from) {
        set(&mut flows.delivered_bytes, nonzero(bytes));
        blank_data(flows);
        blank_reasons(flows);
        set(&mut flows.retransmissions, UNKNOWN);
        set(&mut flows.retransmissions_unknown, UNKNOWN);
    } else if other.packets == 0 && view.is_some_and(|view| !view.has_acks) {
        blank_reasons(flows);
    } else if view.is_some() && other.is_cut {
        blank_losses(flows);
        blank_reasons(flows);
        let all = flows.retransmissions.last().copied().unwrap_or(UNKNOWN);
        set(&mut flows.retransmissions_unknown, all);
    }
    if view.is_some_and(is_mostly_missing) {
        blank_losses(flows);
        blank_reasons(flows);
        set(&mut flows.retransmissions, UNKNOWN);
        set(&mut flows.retransmissions_unknown, UNKNOWN);
    }
    if other.packets == 0 {
        set(&mut flows.zero_windows, NONE);
        set(&mut flows.zero_window_s, f64::NAN);
        set(&mut flows.ece_packets, NONE);
        set(&mut flows.reported_marks, NONE);
    }
    let [client, server] = &connection.directions;
    if client.is_absent() {
        set(&mut flows.syn_retransmissions, UNKNOWN);
    }
    if server.is_absent() {
        set(&mut flows.synack_retransmissions, UNKNOWN);
    }
}

/// Return true if the capture has fewer segments of a direction than arrived without it.
fn is_mostly_missing(view: &SenderView) -> bool {
    view.totals.fates[Fate::NotCaptured as usize] > view.totals.data_segments
}

/// The counts of losses: which copies arrived.
fn blank_losses(flows: &mut Flows) {
    for column in [
        &mut flows.delivered,
        &mut flows.lost,
        &mut flows.lost_upstream,
        &mut flows.unresolved,
    ] {
        set(column, UNKNOWN);
    }
}

/// The counts of data.
fn blank_data(flows: &mut Flows) {
    blank_losses(flows);
    for column in [
        &mut flows.reordered,
        &mut flows.duplicates,
        &mut flows.not_captured,
        &mut flows.congestion_marks,
        &mut flows.ect1_packets,
    ] {
        set(column, UNKNOWN);
    }
    set(&mut flows.hop_changes, NONE);
    set(&mut flows.cwr_packets, NONE);
}

/// The reasons of retransmissions, which acknowledgements show.
fn blank_reasons(flows: &mut Flows) {
    for column in [
        &mut flows.spurious,
        &mut flows.retransmissions_fast,
        &mut flows.retransmissions_tail_probe,
        &mut flows.retransmissions_timeout,
        &mut flows.retransmissions_spurious,
        &mut flows.timeouts,
        &mut flows.recoveries,
        &mut flows.window_probes,
        &mut flows.duplicate_acks,
    ] {
        set(column, UNKNOWN);
    }
    set(&mut flows.nagle_waits, NONE);
    set(&mut flows.nagle_wait_s, f64::NAN);
    set(&mut flows.sack_reneged, NONE);
    for column in [
        &mut flows.limited_application_s,
        &mut flows.limited_receiver_s,
        &mut flows.limited_cwnd_s,
        &mut flows.limited_slow_start_s,
        &mut flows.limited_bottleneck_s,
        &mut flows.limited_shared_bottleneck_s,
        &mut flows.limited_send_buffer_s,
        &mut flows.limited_unknown_window_s,
        &mut flows.limited_unknown_s,
    ] {
        set(column, f64::NAN);
    }
}

fn set<T>(column: &mut [T], value: T) {
    if let Some(last) = column.last_mut() {
        *last = value;
    }
}

/// Unknown instead of 0 bytes: no acknowledgement shows how many there were.
fn nonzero(bytes: u64) -> u64 {
    if bytes == 0 {
        UNKNOWN
    } else {
        bytes
    }
}
