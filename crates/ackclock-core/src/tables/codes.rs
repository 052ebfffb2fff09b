//! Codes of columns and their names in the dataset.

/// Define the codes of a column, from 0 up, each with its name in the dataset.
#[macro_export]
macro_rules! codes {
    ($(#[$doc:meta])* $Codes:ident { $($(#[$variant_doc:meta])* $Variant:ident => $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $Codes { $($(#[$variant_doc])* $Variant),+ }

        impl $Codes {
            /// Names by code.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
        }
    };
}

codes!(
    /// Kind of an event.
    EventKind {
        /// A queue dropped a packet.
        Drop => "drop",
        /// A packet was lost at random, on a failed link, or because it had no route.
        Loss => "loss",
        /// A queue marked a packet.
        Mark => "mark",
        /// Fast recovery begins.
        Recovery => "recovery",
        /// The retransmission timer expired.
        Timeout => "timeout",
        /// A segment is retransmitted.
        Retransmission => "retransmission",
        /// A SYN is retransmitted.
        SynRetransmission => "syn_retransmission",
        /// A tail loss probe is sent.
        TailProbe => "tail_probe",
        /// The connection is established.
        Established => "established",
        /// The last data byte is acknowledged.
        Finished => "finished",
        /// A sender reduces its window because of ECN marks.
        MarkReaction => "mark_reaction",
        /// A link changes its rate or delay, fails or recovers; the value is its new rate, 0 while it is down.
        LinkChange => "link_change",
        /// A SYN/ACK is retransmitted.
        SynAckRetransmission => "synack_retransmission",
        /// A retransmitted segment had arrived, or was to arrive; if a sender reports it, a DSACK proved it.
        SpuriousRetransmission => "spurious_retransmission",
        /// A segment arrived after others that were sent later.
        Reordering => "reordering",
        /// The network duplicated a segment.
        Duplicate => "duplicate",
        /// A segment reached its receiver, but is missing from the capture.
        CaptureLoss => "capture_loss",
        /// A flow stalled.
        Stall => "stall",
        /// A reduction of the window proved spurious and is undone.
        Undo => "undo",
        /// A link damaged a packet, which the receiving host discards.
        Corruption => "corruption",
        /// A circuit breaker ends a flow; the value is 1 without reports, 2 without progress, 3 for congestion.
        CircuitBreaker => "circuit_breaker",
    }
);

codes!(
    /// Action on a packet in the packet log.
    PacketAction {
        /// Offered to a queue; a `Drop` of this or another packet may follow.
        Enqueue => "enqueue",
        /// Left the link.
        Dequeue => "dequeue",
        /// Dropped by the queue.
        Drop => "drop",
        /// Lost at random, on a failed link, or without a route.
        Loss => "loss",
        /// Reached its destination.
        Arrive => "arrive",
    }
);

codes!(
    /// End of a flow that sent a packet.
    End {
        /// Sender of the data.
        Sender => "sender",
        /// Receiver of the data.
        Receiver => "receiver",
    }
);

codes!(
    /// Cause of a packet's transmission.
    SendCause {
        /// First transmission of a SYN or SYN/ACK.
        Opening => "opening",
        /// Retransmission of a SYN, SYN/ACK or request without a response.
        OpeningRetransmission => "opening_again",
        /// Data that were not sent before, or the FIN.
        NewData => "new_data",
        /// New data while ACKs report disorder and no loss is found yet (RFC 3042).
        LimitedTransmit => "limited_transmit",
        /// ACKs show that it is lost.
        FastRetransmit => "fast_retransmit",
        /// A tail loss probe (RFC 8985 section 7), with new or retransmitted data.
        TailProbe => "tail_probe",
        /// The retransmission timer expired.
        Timeout => "timeout",
        /// Retransmission, in the recovery after a timeout, of what the timeout marked as lost.
        AfterTimeout => "after_timeout",
        /// An acknowledgement, the receiver's FIN, a datagram or its echo.
        Other => "other",
    }
);

codes!(
    /// Fate of a packet.
    PacketFate {
        /// It reached its destination as the first copy of its data.
        Delivered => "delivered",
        /// It reached its destination, which had its data already.
        Duplicate => "duplicate",
        /// A queue dropped it.
        Dropped => "dropped",
        /// It was lost at random, on a failed link, or because it had no route.
        Lost => "lost",
        /// It was in the network when the run ended.
        InTransit => "under_way",
    }
);

codes!(
    /// Limit that kept a segment from leaving earlier.
    SendLimit {
        /// None: it belongs to the first flight or carries no data.
        None => "nothing",
        /// The application had not written it.
        Application => "application",
        /// The receiver's window.
        Receiver => "receiver",
        /// The congestion window, below the slow start threshold.
        SlowStart => "slow_start",
        /// The congestion window, above it.
        Cwnd => "cwnd",
        /// The congestion window while it is reduced for losses or marks.
        Recovery => "recovery",
        /// Pacing.
        Pacing => "pacing",
        /// The send buffer, in which the application had no room to write it.
        SendBuffer => "send_buffer",
    }
);
