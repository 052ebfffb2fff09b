//! The rows that an analysis fills: the dataset's names and units where the same thing is meant, with columns that only
//! a capture has in addition. Missing values are as in `ackclock_core::tables`.

use ackclock_core::tables::{codes, record, table};

codes!(
    /// The vantage point, relative to the data's sender.
    Vantage {
        /// Unknown.
        Unknown => "unknown",
        /// At the data's sender.
        Sender => "sender",
        /// At its receiver.
        Receiver => "receiver",
        /// Between them.
        Middle => "middle",
    }
);

codes!(
    /// The fate of a transmission.
    Fate {
        /// The capture ends before it is known.
        Unresolved => "unresolved",
        /// It reached its receiver.
        Delivered => "delivered",
        /// It was captured, and lost behind the vantage point.
        Lost => "lost",
        /// It was lost before the vantage point, so it was not captured.
        LostBefore => "lost_upstream",
        /// It arrived behind segments sent after it (reordering).
        Reordered => "reordered",
        /// The network duplicated it.
        Duplicate => "duplicate",
        /// Retransmitted although an earlier transmission had arrived or would arrive.
        Spurious => "spurious",
        /// It reached its receiver, but the capture does not have it.
        NotCaptured => "not_captured",
    }
);

codes!(
    /// Why something was retransmitted.
    RetransmitCause {
        /// Not retransmitted, or it is unknown.
        Unknown => "unknown",
        /// Fast retransmit: acknowledgements reported it missing.
        Fast => "fast",
        /// The end of a flight, retransmitted to provoke an acknowledgement (RFC 8985 section 7).
        TailProbe => "tail_probe",
        /// The retransmission timer, with all that is retransmitted because of it.
        Timeout => "timeout",
        /// A SYN.
        Syn => "syn",
        /// A SYN/ACK.
        SynAck => "synack",
        /// The retransmission was spurious.
        Spurious => "spurious",
        /// A byte into a closed window, or at the edge of what is acknowledged: not a retransmission.
        WindowProbe => "window_probe",
    }
);

codes!(
    /// The limit of a sender.
    Limit {
        /// Unknown.
        Unknown => "unknown",
        /// It had nothing to send.
        Application => "application",
        /// The receiver's window.
        Receiver => "receiver",
        /// Its congestion window, without an observable queue.
        Cwnd => "cwnd",
        /// Slow start.
        SlowStart => "slow_start",
        /// A link that it fills alone.
        Bottleneck => "bottleneck",
        /// A link that others fill too.
        SharedBottleneck => "shared_bottleneck",
        /// The sender's buffer: as much is under way as it holds.
        SendBuffer => "send_buffer",
        /// Perhaps the receiver's window, whose scale is unknown.
        UnknownWindow => "unknown_window",
    }
);

codes!(
    /// The cause of a stall.
    Stall {
        /// Unknown.
        Unknown => "unknown",
        /// The application: nothing was outstanding.
        Application => "application",
        /// The receiver's window was closed.
        Receiver => "receiver",
        /// It ended with the retransmission timer.
        Timeout => "timeout",
        /// The end of a flight was lost, which no acknowledgement reports.
        TailLoss => "tail_loss",
        /// A retransmission was lost too.
        DoubleRetransmission => "double_retransmission",
        /// Too few segments were in flight for fast retransmit.
        SmallWindow => "small_window",
        /// A whole window was lost.
        ContinuousLoss => "continuous_loss",
        /// Acknowledgements were delayed, and nothing was retransmitted.
        AckDelay => "ack_delay",
        /// The handshake was not answered.
        Handshake => "handshake",
        /// The sending host stopped, but its clock went on.
        Host => "host",
        /// The host and its clock stopped.
        Machine => "machine",
        /// The flow went on, but the capture does not have it.
        CaptureLoss => "capture_loss",
        /// A small segment waited for a delayed acknowledgement (Nagle's algorithm).
        Nagle => "nagle",
    }
);

table!(
    /// Samples of the flows.
    FlowSamples {
        time_s: f64,
        flow: u32,
        /// In segments; NaN unless the window limits, outside recovery, and acknowledgements let out what is sent.
        cwnd: f64,
        srtt_s: f64,
        /// RFC 6675's pipe, in segments: the window is no smaller.
        in_flight: u32,
        delivered_bytes: u64,
        /// NaN before it is known.
        receiver_window_bytes: f64,
        /// A [`Limit`].
        limit: u8,
    }
);

table!(
    /// Events; `kind` is a [`ackclock_core::tables::EventKind`].
    Events {
        time_s: f64,
        flow: u32,
        link: u32,
        kind: u8,
        /// The segment's number where there is one.
        value: f64,
        /// A [`RetransmitCause`] for retransmissions, a [`Stall`] for stalls, else 0.
        class: u8,
        duration_s: f64,
        confidence: f64,
    }
);

table!(
    /// The fate of each copy of each segment, if recorded.
    Segments {
        time_s: f64,
        flow: u32,
        /// Its first byte, counted from the first that the flow sent.
        offset_bytes: u64,
        payload_bytes: u32,
        /// Segments of at most the MSS in it.
        segments: u32,
        /// The capture has it.
        seen: bool,
        /// A [`Fate`].
        fate: u8,
        /// A [`RetransmitCause`].
        cause: u8,
        confidence: f64,
    }
);

table!(
    /// Acknowledgements as they passed the vantage point, if segments are recorded.
    Acknowledgements {
        time_s: f64,
        /// The flow whose data it acknowledges.
        flow: u32,
        /// The next byte that is expected, counted as in [`Segments`].
        offset_bytes: u64,
        receiver_window_bytes: u64,
        /// The first SACK block: it has what arrived last (RFC 2018 section 4).
        sack_start_bytes: u64,
        sack_end_bytes: u64,
    }
);

table!(
    /// One row for each direction of a connection that carries data, also where none of them were captured, and one for a
    /// connection without any. Counts that need packets which were not captured are unknown.
    Flows {
        /// Twice the connection's number, and one more if the server sends.
        flow: u32,
        client: String,
        server: String,
        client_port: u32,
        server_port: u32,
        /// The client's SYN or the server's SYN/ACK was captured.
        opened: bool,
        /// A FIN or RST was captured.
        closed: bool,
        reset: bool,
        start_s: f64,
        established_s: f64,
        end_s: f64,
        handshake_s: f64,
        /// The vantage point, by [`Vantage`].
        vantage: u8,
        vantage_confidence: f64,
        /// From the vantage point to the data's receiver and back; to its sender and back.
        rtt_receiver_side_s: f64,
        rtt_sender_side_s: f64,
        sent_packets: u64,
        /// Bytes of IP packets.
        sent_bytes: u64,
        /// Packets of the other direction, and their bytes.
        received_packets: u64,
        received_bytes: u64,
        payload_bytes: u64,
        data_packets: u64,
        data_segments: u64,
        super_segments: u64,
        delivered_bytes: u64,
        first_data_s: f64,
        last_data_s: f64,
        last_ack_s: f64,
        goodput_bps: f64,
        mss: u32,
        peer_mss: u32,
        window_scale: u32,
        sack: bool,
        timestamps: bool,
        ecn: bool,
        initial_window: u32,
        receiver_window_max_bytes: u64,
        rtt_min_s: f64,
        rtt_mean_s: f64,
        rtt_max_s: f64,
        rtt_samples: u64,
        rtt_timestamps_min_s: f64,
        rtt_timestamps_mean_s: f64,
        rtt_timestamps_samples: u64,
        rtt_sides_min_s: f64,
        rtt_sides_mean_s: f64,
        cwnd_max: f64,
        /// Fates, in segments.
        delivered: u64,
        lost: u64,
        lost_upstream: u64,
        reordered: u64,
        duplicates: u64,
        spurious: u64,
        /// In captures by the sending host with those that were lost afterwards: they are among `lost` too.
        not_captured: u64,
        unresolved: u64,
        /// Causes, in segments; those of spurious ones are among `retransmissions_spurious` only.
        retransmissions: u64,
        retransmissions_fast: u64,
        retransmissions_tail_probe: u64,
        retransmissions_timeout: u64,
        retransmissions_spurious: u64,
        retransmissions_unknown: u64,
        syn_retransmissions: u64,
        synack_retransmissions: u64,
        timeouts: u64,
        recoveries: u64,
        window_probes: u64,
        duplicate_acks: u64,
        /// Segments that were not full and waited for a delayed acknowledgement of the one before (RFC 1122 section
        /// 4.2.3.4), and for how long in all.
        nagle_waits: u32,
        nagle_wait_s: f64,
        /// The largest segment that was acknowledged; the smallest of those that were sent three times, or more, and never
        /// were.
        largest_delivered_bytes: u32,
        smallest_stuck_bytes: u32,
        congestion_marks: u64,
        /// Packets with ECT(1) (L4S, RFC 9331); acknowledgements with ECE and packets with CWR (missing unless these are
        /// RFC 3168's).
        ect1_packets: u64,
        ece_packets: u32,
        cwr_packets: u32,
        /// Marked packets that the other end reported by AccECN's counter (RFC 9768; missing without it), whether there may
        /// have been more, and their bytes by its option.
        reported_marks: u32,
        reported_is_minimum: bool,
        reported_marked_bytes: u64,
        /// Segments that were sacked, then sent again because the cumulative acknowledgement stopped before them (RFC
        /// 2018 section 8).
        sack_reneged: u32,
        /// Times that the receiver advertised a window of zero, and for how long in all.
        zero_windows: u32,
        zero_window_s: f64,
        /// The number of times that the packets' TTL became another.
        hop_changes: u32,
        /// Keep-alives of either end, and the longest run that was not answered.
        keep_alives: u32,
        keep_alives_unanswered: u32,
        /// Bytes of data in the SYN, and those of them that the SYN/ACK acknowledges.
        fast_open_bytes: u32,
        fast_open_accepted_bytes: u32,
        /// The mean time by which acknowledgements took longer than the fastest ones on their way to the sender.
        ack_wait_s: f64,
        /// When the round-trip time rose at once and for good, and the least before and since.
        rtt_step_at_s: f64,
        rtt_step_from_s: f64,
        rtt_step_to_s: f64,
        bad_checksums: u64,
        /// Seconds that each held the sender back.
        limited_application_s: f64,
        limited_receiver_s: f64,
        limited_cwnd_s: f64,
        limited_slow_start_s: f64,
        limited_bottleneck_s: f64,
        limited_shared_bottleneck_s: f64,
        limited_send_buffer_s: f64,
        limited_unknown_window_s: f64,
        limited_unknown_s: f64,
        stalls: u32,
        stalled_s: f64,
    }
);

record!(
    /// The rows since the last drain.
    Tables {
        flows: Flows,
        flow_samples: FlowSamples,
        events: Events,
        segments: Segments,
        acknowledgements: Acknowledgements,
    }
);
