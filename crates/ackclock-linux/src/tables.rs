//! Tables that a run writes in addition to those of the dataset.

use ackclock_core::tables::{record, table, Events, FlowSamples, Flows, Links, QueueSamples};

table!(
    /// The kernel's account of what limited the senders, one row per TCP flow that began: of the time with data to
    /// send, the shares limited by the receive window and by the send buffer; and the minimum RTT.
    Limits {
        flow: u32,
        busy_s: f64,
        window_limited_s: f64,
        buffer_limited_s: f64,
        least_rtt_s: f64,
        reordering_p: u32,
        delivered_marked_p: u32,
    }
);
table!(
    /// The kernel, one row: its version, how late the samples were, how many were left out because their time had
    /// passed before the one before was taken, how many packets the capture lacks, how often all TCP together had more
    /// memory than it may, and how long the applications waited for files.
    Kernel {
        release: String,
        late_mean_s: f64,
        late_max_s: f64,
        skipped_samples: u64,
        capture_lost_p: u64,
        memory_pressures: u64,
        file_read_s: f64,
        file_write_s: f64,
    }
);

table!(
    /// The ends of a flow on this machine, one row per flow, where several machines execute a run spec; the client
    /// opens the connection.
    Ends {
        flow: u32,
        sender: bool,
        receiver: bool,
        client: bool,
    }
);

record!(
    /// All tables of a run. Of events, what TCP does between two samples has the time of the second.
    Record {
        flow_samples: FlowSamples,
        queue_samples: QueueSamples,
        events: Events,
        flows: Flows,
        links: Links,
        limits: Limits,
        kernel: Kernel,
        ends: Ends,
    }
);
