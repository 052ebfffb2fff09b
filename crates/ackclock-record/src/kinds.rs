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
