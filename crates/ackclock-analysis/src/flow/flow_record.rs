//! The rows of a connection that is over, or of which no more is seen.

use std::fmt::Write;
use std::net::IpAddr;

mod unobserved;

use super::ecn_feedback::EcnMode;
use super::sender_view::{SenderView, Totals};
use super::{vantage, Connection};
use crate::output::Output;
use crate::tables::{Fate, Flows, Limit, RetransmitCause, Vantage};
use ackclock_core::tables::{NONE, UNKNOWN};

impl Connection {
    /// End the connection: report everything open and write its rows. Its memory may be reused.
    pub fn finish(&mut self, output: &mut Output) {
        self.close_stall(output);
        let mut any = false;
        for from in 0..2 {
            if let Some(mut sender_view) = self.directions[from].sender_view.take() {
                any = true;
                let is_closed = self.reset || self.directions[from].fin.is_some();
                sender_view.finish(self.last_ns, is_closed, output);
                let from_opening = self.directions[from].initial.is_some()
                    || (from == 0 && self.handshake.established_ns.is_some());
                let is_l4s = self.directions[from].is_l4s();
                sender_view.finish_trace(from_opening, self.handshake.rtt_ns(), is_l4s, output);
                self.row(from, Some(&sender_view), output);
                sender_view.shrink(output);
                self.directions[from].spare = Some(sender_view);
            } else if self.unseen_bytes(from).is_some() {
                any = true;
                self.row(from, None, output);
            }
        }
        if !any {
            self.row(0, None, output);
        }
    }

    fn row(&self, from: usize, sender_view: Option<&SenderView>, output: &mut Output) {
        let seconds = |time_ns: Option<i64>| time_ns.map_or(f64::NAN, |time| output.seconds(time));
        let start_s = output.seconds(self.start_ns);
        let established_s = seconds(self.handshake.established_ns);
        let end_s = output.seconds(self.last_ns);
        let first_data_s = seconds(sender_view.map(|sender_view| sender_view.first_data_ns));
        let last_data_s = seconds(sender_view.map(|sender_view| sender_view.last_data_ns));
        let last_ack_s = seconds(
            sender_view
                .map(|sender_view| sender_view.last_ack_ns)
                .filter(|&ns| ns != 0),
        );
        let step_at_s = seconds(
            sender_view
                .and_then(|sender_view| sender_view.rtt_step.found)
                .map(|(at_ns, _, _)| at_ns),
        );
        let duration_ns = self.handshake.duration_ns();
        let flows = &mut output.tables.flows;
        flows.flow.push(self.flow(from));
        flows.start_s.push(start_s);
        flows.established_s.push(established_s);
        flows.end_s.push(end_s);
        flows
            .handshake_s
            .push(duration_ns.map_or(f64::NAN, |ns| ns as f64 * 1e-9));
        flows.first_data_s.push(first_data_s);
        flows.last_data_s.push(last_data_s);
        flows.last_ack_s.push(last_ack_s);
        flows.rtt_step_at_s.push(step_at_s);
        self.ends_of(from, flows);
        self.options_of(from, flows);
        let mut none = None;
        let view = sender_view.unwrap_or_else(|| none.insert(SenderView::new(NONE, None, 0, 1, 0)));
        self.vantage_of(from, view, flows);
        totals_of(&view.totals, flows);
        flows.lost_upstream.push(self.lost_upstream(from, view));
        let until_s = if view.has_acks {
            last_ack_s
        } else {
            last_data_s
        };
        let is_part_unseen =
            2 * self.directions[from].unseen_head_bytes() > view.totals.delivered_bytes;
        let busy_s = if is_part_unseen {
            f64::NAN
        } else {
            until_s - first_data_s
        };
        times_of(view, busy_s, flows);
        limits_of(view, flows);
        unobserved::blank(self, from, sender_view, flows);
    }

    /// The segments lost before the vantage point: by the sender's own IP identifications, as a retransmission that was
    /// lost too leaves no other trace at the receiver; else as they were inferred.
    fn lost_upstream(&self, from: usize, view: &SenderView) -> u64 {
        let fates = &view.totals.fates;
        let is_remote = matches!(view.vantage, Vantage::Middle | Vantage::Receiver);
        let is_complete = fates[Fate::NotCaptured as usize] == 0;
        let counted = self.directions[from].ip_id.missing_data();
        counted
            .filter(|_| is_remote && is_complete)
            .map_or(fates[Fate::LostBefore as usize], |missing| {
                missing.saturating_sub(view.totals.may_be_late)
            })
    }

    fn ends_of(&self, from: usize, flows: &mut Flows) {
        let [client, server] = &self.ends;
        flows.client.push(text(client.address.ip()));
        flows.server.push(text(server.address.ip()));
        flows.client_port.push(client.port.into());
        flows.server_port.push(server.port.into());
        flows
            .opened
            .push(self.handshake.syn_ns.is_some() || self.handshake.synack_ns.is_some());
        flows.closed.push(
            self.reset
                || self
                    .directions
                    .iter()
                    .any(|direction| direction.fin.is_some()),
        );
        flows.reset.push(self.reset);
        let (own, other) = (&self.directions[from], &self.directions[1 - from]);
        flows.sent_packets.push(own.packets);
        flows.sent_bytes.push(own.packet_bytes);
        flows.received_packets.push(other.packets);
        flows.received_bytes.push(other.packet_bytes);
        flows.bad_checksums.push(self.bad_checksums.into());
        self.ecn_of(from, flows);
        flows.hop_changes.push(own.hops.changes);
        let zero_window_ns = other.zero_windows.closed_ns(self.last_ns);
        flows.zero_windows.push(other.zero_windows.count);
        flows.zero_window_s.push(zero_window_ns as f64 * 1e-9);
        flows.keep_alives.push(self.keep_alives.probes);
        flows
            .keep_alives_unanswered
            .push(self.keep_alives.unanswered);
        let [sent, accepted] = self.handshake.fast_open_bytes;
        flows.fast_open_bytes.push(sent);
        flows.fast_open_accepted_bytes.push(accepted);
        flows.stalls.push(self.stalls);
        flows.stalled_s.push(self.stalled_ns as f64 * 1e-9);
        let [client, server] = &self.directions;
        flows
            .syn_retransmissions
            .push(client.syn_retransmissions.into());
        flows
            .synack_retransmissions
            .push(server.syn_retransmissions.into());
    }

    /// The marks of its packets, and what the other end reported of them.
    fn ecn_of(&self, from: usize, flows: &mut Flows) {
        let (own, other) = (&self.directions[from], &self.directions[1 - from]);
        let [_, ect1, _, marks] = own.ecn_packets;
        flows.congestion_marks.push(marks.into());
        flows.ect1_packets.push(ect1.into());
        let (sent, reported) = (&own.ecn_feedback, &other.ecn_feedback);
        let mode = self.ecn_mode();
        let of_mode = |wanted: EcnMode, count: u32| if mode == wanted { count } else { NONE };
        flows
            .ece_packets
            .push(of_mode(EcnMode::Classic, reported.ece_packets));
        flows
            .cwr_packets
            .push(of_mode(EcnMode::Classic, sent.cwr_packets));
        flows
            .reported_marks
            .push(of_mode(EcnMode::Accurate, reported.marks));
        flows.reported_is_minimum.push(reported.is_minimum);
        flows
            .reported_marked_bytes
            .push(reported.marked_bytes.unwrap_or(UNKNOWN));
    }

    fn options_of(&self, from: usize, flows: &mut Flows) {
        let (own, other) = (&self.directions[from], &self.directions[1 - from]);
        let column = |mss: Option<u16>| mss.map_or(NONE, u32::from);
        flows.peer_mss.push(column(other.mss));
        flows
            .window_scale
            .push(self.window_shift(1 - from).map_or(NONE, u32::from));
        let both = own.initial.is_some() && other.initial.is_some();
        flows.sack.push(other.sack && (own.sack || !both));
        flows.timestamps.push(own.timestamps && other.timestamps);
        flows.ecn.push(own.ecn && other.ecn);
    }

    fn vantage_of(&self, from: usize, sender_view: &SenderView, flows: &mut Flows) {
        flows.vantage.push(sender_view.vantage as u8);
        flows.vantage_confidence.push(vantage::confidence(
            sender_view,
            from,
            self.handshake.side_rtts_ns,
        ));
        let half_s = |own_s: f64, handshake_ns: i64| {
            if own_s.is_nan() && handshake_ns > 0 {
                handshake_ns as f64 * 1e-9
            } else {
                own_s
            }
        };
        let receiver_s = half_s(
            sender_view.receiver_side_rtt.min_s(),
            self.handshake.side_rtts_ns[1 - from],
        );
        let sender_s = half_s(
            sender_view.sender_side_rtt.min_s(),
            self.handshake.side_rtts_ns[from],
        );
        flows.rtt_receiver_side_s.push(receiver_s);
        flows.rtt_sender_side_s.push(sender_s);
        flows.rtt_sides_min_s.push(receiver_s + sender_s);
        let mean_s = sender_view.receiver_side_rtt.mean_s() + sender_view.sender_side_rtt.mean_s();
        flows.rtt_sides_mean_s.push(measured_s(mean_s));
    }
}

/// An address as text; there are millions of them.
fn text(address: IpAddr) -> String {
    let mut text = String::with_capacity(if address.is_ipv4() { 15 } else { 39 });
    // A string takes all.
    let _ = write!(text, "{address}");
    text
}

fn totals_of(totals: &Totals, flows: &mut Flows) {
    let fate = |fate: Fate| totals.fates[fate as usize];
    let cause = |cause: RetransmitCause| totals.causes[cause as usize];
    flows.payload_bytes.push(totals.payload_bytes);
    flows.data_packets.push(totals.data_packets);
    flows.data_segments.push(totals.data_segments);
    flows.super_segments.push(totals.super_segments);
    flows.delivered_bytes.push(totals.delivered_bytes);
    flows.initial_window.push(totals.initial_window);
    flows
        .receiver_window_max_bytes
        .push(if totals.window_max_bytes == 0 {
            UNKNOWN
        } else {
            totals.window_max_bytes
        });
    flows.delivered.push(fate(Fate::Delivered));
    flows.lost.push(fate(Fate::Lost));
    flows.reordered.push(fate(Fate::Reordered));
    flows.duplicates.push(fate(Fate::Duplicate));
    flows.spurious.push(fate(Fate::Spurious));
    flows.not_captured.push(fate(Fate::NotCaptured));
    flows.unresolved.push(fate(Fate::Unresolved));
    let recovery = [
        RetransmitCause::Fast,
        RetransmitCause::TailProbe,
        RetransmitCause::Timeout,
        RetransmitCause::Spurious,
        RetransmitCause::Unknown,
    ];
    flows.retransmissions.push(recovery.map(cause).iter().sum());
    flows
        .retransmissions_fast
        .push(cause(RetransmitCause::Fast));
    flows
        .retransmissions_tail_probe
        .push(cause(RetransmitCause::TailProbe));
    flows
        .retransmissions_timeout
        .push(cause(RetransmitCause::Timeout));
    flows
        .retransmissions_spurious
        .push(cause(RetransmitCause::Spurious));
    flows
        .retransmissions_unknown
        .push(cause(RetransmitCause::Unknown));
    flows.timeouts.push(totals.timeouts);
    flows.recoveries.push(totals.recoveries);
    flows
        .window_probes
        .push(cause(RetransmitCause::WindowProbe));
    flows.duplicate_acks.push(totals.duplicate_acks);
    flows.sack_reneged.push(totals.sack_reneged);
    flows.nagle_waits.push(totals.nagle_waits);
    flows.nagle_wait_s.push(totals.nagle_wait_ns as f64 * 1e-9);
    let known = |bytes: u32| if bytes == 0 { NONE } else { bytes };
    flows
        .largest_delivered_bytes
        .push(known(totals.largest_delivered_bytes));
    flows
        .smallest_stuck_bytes
        .push(known(totals.smallest_stuck_bytes));
}

fn times_of(sender_view: &SenderView, busy_s: f64, flows: &mut Flows) {
    let bits = sender_view.totals.delivered_bytes as f64 * 8.0;
    flows.goodput_bps.push(if busy_s > 0.0 {
        bits / busy_s
    } else {
        f64::NAN
    });
    flows.mss.push(if sender_view.flow == NONE {
        NONE
    } else {
        sender_view.mss
    });
    flows.rtt_min_s.push(sender_view.rtt.min_s());
    flows.rtt_mean_s.push(measured_s(sender_view.rtt.mean_s()));
    flows.rtt_max_s.push(measured_s(sender_view.rtt.max_s()));
    flows.rtt_samples.push(sender_view.rtt.count);
    flows
        .rtt_timestamps_min_s
        .push(sender_view.rtt_timestamps.min_s());
    flows
        .rtt_timestamps_mean_s
        .push(measured_s(sender_view.rtt_timestamps.mean_s()));
    flows
        .rtt_timestamps_samples
        .push(sender_view.rtt_timestamps.count);
    flows.ack_wait_s.push(sender_view.ack_wait_s());
    let step = sender_view.rtt_step.found;
    let level_s = |ns: Option<i64>| ns.map_or(f64::NAN, |ns| ns as f64 * 1e-9);
    flows
        .rtt_step_from_s
        .push(level_s(step.map(|(_, from_ns, _)| from_ns)));
    flows
        .rtt_step_to_s
        .push(level_s(step.map(|(_, _, to_ns)| to_ns)));
    let known = sender_view.vantage != Vantage::Unknown && sender_view.has_acks;
    let mss = f64::from(sender_view.mss.max(1));
    let most = sender_view.totals.pipe_max_bytes as f64 / mss;
    flows.cwnd_max.push(if known { most } else { f64::NAN });
}

/// A round-trip time in seconds; NaN instead of 0: the capture's clock did not advance in it.
fn measured_s(rtt_s: f64) -> f64 {
    if rtt_s > 0.0 {
        rtt_s
    } else {
        f64::NAN
    }
}

fn limits_of(sender_view: &SenderView, flows: &mut Flows) {
    let limited_s = sender_view.limits.limited_s();
    let limited = |limit: Limit| limited_s[limit as usize];
    flows
        .limited_application_s
        .push(limited(Limit::Application));
    flows.limited_receiver_s.push(limited(Limit::Receiver));
    flows.limited_cwnd_s.push(limited(Limit::Cwnd));
    flows.limited_slow_start_s.push(limited(Limit::SlowStart));
    flows.limited_bottleneck_s.push(limited(Limit::Bottleneck));
    flows
        .limited_shared_bottleneck_s
        .push(limited(Limit::SharedBottleneck));
    flows.limited_send_buffer_s.push(limited(Limit::SendBuffer));
    flows
        .limited_unknown_window_s
        .push(limited(Limit::UnknownWindow));
    flows.limited_unknown_s.push(limited(Limit::Unknown));
}
