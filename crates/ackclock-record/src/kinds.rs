//! Codes of columns, and the words that they stand for.

/// Defines the codes of a column, 0 and up, each with its word in the dataset.
#[macro_export]
macro_rules! kinds {
    ($(#[$about:meta])* $Kind:ident { $($(#[$what:meta])* $Variant:ident => $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $Kind { $($(#[$what])* $Variant),+ }

        impl $Kind {
            /// The words, by code.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
        }
    };
}

kinds!(
    /// Something worth an event.
    Happening {
        /// A queue dropped a packet.
        Drop => "drop",
        /// A packet was lost at random, by a link that fails, or for want of a way.
        Loss => "loss",
        /// A queue marked a packet.
        Mark => "mark",
        /// Fast recovery begins.
        Recovery => "recovery",
        /// The retransmission timer expired.
        Timeout => "timeout",
        /// A segment is sent again.
        Retransmission => "retransmission",
        /// A SYN is sent again.
        SynRetransmission => "syn_retransmission",
        /// A tail loss probe is sent.
        TailProbe => "tail_probe",
        /// The connection is open.
        Established => "established",
        /// The last data byte is acknowledged.
        Finished => "finished",
        /// A sender comes down for ECN marks.
        MarkReaction => "mark_reaction",
        /// A link's rate or delay changes, it fails or works again; the value is its rate from now on, 0 if it is down.
        LinkChange => "link_change",
        /// A SYN/ACK is sent again.
        SynAckRetransmission => "synack_retransmission",
        /// A segment was sent again although it had arrived, or was to arrive; where a sender tells, a DSACK proved it.
        SpuriousRetransmission => "spurious_retransmission",
        /// A segment came later than others that were sent after it.
        Reordering => "reordering",
        /// The network made a second copy of a segment.
        Duplicate => "duplicate",
        /// A segment reached its receiver, but the capture does not have it.
        CaptureLoss => "capture_loss",
        /// A flow stood still.
        Stall => "stall",
        /// A reduction of the window proved needless and is taken back.
        Undo => "undo",
        /// A link damaged a packet; its end discards it.
        Corruption => "corruption",
    }
);

kinds!(
    /// What happened to a packet in the packet log.
    Action {
        /// Offered to a queue; a `Drop` of it, or of another packet, may follow.
        Enqueue => "enqueue",
        /// Left the link.
        Dequeue => "dequeue",
        /// Dropped by the queue.
        Drop => "drop",
        /// Lost at random, by a link that fails, or for want of a way.
        Loss => "loss",
        /// Reached the far end.
        Arrive => "arrive",
    }
);

kinds!(
    /// Which end of a flow sent a packet.
    End {
        /// The one that sends the data.
        Sender => "sender",
        /// The one that receives them.
        Receiver => "receiver",
    }
);

kinds!(
    /// Why a packet was sent.
    Cause {
        /// A SYN or SYN/ACK, for the first time.
        Opening => "opening",
        /// A SYN, SYN/ACK or request again: no answer came.
        OpeningAgain => "opening_again",
        /// Data that were never sent, or the FIN.
        NewData => "new_data",
        /// New data while ACKs report disorder and no loss is found yet (RFC 3042).
        LimitedTransmit => "limited_transmit",
        /// ACKs have told that it is lost.
        FastRetransmit => "fast_retransmit",
        /// A tail loss probe (RFC 8985 section 7), with new data or old ones.
        TailProbe => "tail_probe",
        /// The retransmission timer expired.
        Timeout => "timeout",
        /// Taken for lost when the timer expired, and sent again while that is repaired.
        AfterTimeout => "after_timeout",
        /// An acknowledgement, the end of the receiver's side, a datagram or its echo.
        Other => "other",
    }
);

kinds!(
    /// What became of a packet.
    Fate {
        /// It reached its end, and was the first to bring what it carries.
        Delivered => "delivered",
        /// It reached its end, which had what it carries.
        Duplicate => "duplicate",
        /// A queue dropped it.
        Dropped => "dropped",
        /// It was lost at random, by a link that fails, or for want of a way.
        Lost => "lost",
        /// The run ended before.
        UnderWay => "under_way",
    }
);

kinds!(
    /// What kept a segment from leaving earlier.
    Limit {
        /// Nothing: it is of the first flight, or carries no data.
        Nothing => "nothing",
        /// The application had not written it.
        Application => "application",
        /// The receiver's window.
        Receiver => "receiver",
        /// The congestion window, below the slow start threshold.
        SlowStart => "slow_start",
        /// The congestion window, above it.
        Cwnd => "cwnd",
        /// The window while it comes down for losses or marks.
        Recovery => "recovery",
        /// Pacing.
        Pacing => "pacing",
    }
);
