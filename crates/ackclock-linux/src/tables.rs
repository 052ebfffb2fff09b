//! What a run writes down, as columns named as in the dataset.
//!
//! Absent values are NaN in float columns and the type's largest value in integer ones.

use crate::result::{Columns, IntoColumn, Tables};

/// Stands for "no flow", "no link", "no node".
pub const NONE: u32 = u32::MAX;
/// Stands for a count that is not known.
pub const UNKNOWN: u64 = u64::MAX;

/// Something worth an event: its number among the dataset's kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Happening {
    Drop = 0,
    Loss = 1,
    Recovery = 3,
    Timeout = 4,
    Retransmission = 5,
    SynRetransmission = 6,
    Established = 8,
    Finished = 9,
    LinkChange = 11,
}

/// Defines a table and how it becomes named columns.
macro_rules! table {
    ($(#[$about:meta])* $Table:ident { $($name:ident: $kind:ty),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        #[allow(missing_docs)]
        pub struct $Table { $(pub $name: Vec<$kind>),+ }

        impl $Table {
            /// The columns by name.
            pub fn columns(self) -> Columns {
                let $Table { $($name),+ } = self;
                let columns = [$((stringify!($name), $name.into_column())),+];
                columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect()
            }
        }
    };
}

table!(
    /// Samples of the flows.
    FlowSamples {
        time_s: f64,
        flow: u32,
        cwnd: f64,
        ssthresh: f64,
        srtt_s: f64,
        in_flight: u32,
        delivered_bytes: u64,
    }
);
table!(
    /// Samples of the links.
    QueueSamples {
        time_s: f64,
        link: u32,
        backlog_p: u32,
        backlog_bytes: u64,
        sojourn_s: f64,
        departures_p: u64,
        drops_p: u64,
        marks_p: u64,
        utilisation: f64,
    }
);
table!(
    /// Events. What TCP does between two samples has the time of the second.
    Events {
        time_s: f64,
        flow: u32,
        link: u32,
        kind: u8,
        value: f64,
    }
);
table!(
    /// One row a flow, and one for each generated transfer that began.
    Flows {
        flow: u32,
        group: u32,
        source_node: u32,
        destination_node: u32,
        base_rtt_s: f64,
        size_bytes: u64,
        start_s: f64,
        established_s: f64,
        end_s: f64,
        completion_s: f64,
        delivered_bytes: u64,
        measured_bytes: u64,
        sent_packets: u64,
        sent_bytes: u64,
        received_packets: u64,
        dropped_packets: u64,
        retransmissions: u64,
        timeouts: u64,
        syn_retransmissions: u64,
        recoveries: u64,
        tail_probes: u64,
        measured_sent_packets: u64,
        measured_retransmissions: u64,
        measured_timeouts: u64,
        delay_mean_s: f64,
    }
);
table!(
    /// One row a link; counts are of the measured part unless they say `total`.
    Links {
        link: u32,
        name: String,
        bottleneck: bool,
        rate_bps: f64,
        arrived_p: u64,
        dropped_p: u64,
        lost_p: u64,
        marked_p: u64,
        departed_p: u64,
        departed_bytes: u64,
        busy_s: f64,
        empty_s: f64,
        backlog_mean_p: f64,
        backlog_mean_bytes: f64,
        sojourn_mean_s: f64,
        sojourn_max_s: f64,
        arrived_total_p: u64,
        dropped_total_p: u64,
        lost_total_p: u64,
        departed_total_p: u64,
    }
);
table!(
    /// What the kernel says held the senders back, one row a TCP flow that began: of the time with data to send, how long
    /// the receiver's window and the send buffer did.
    Limits {
        flow: u32,
        busy_s: f64,
        window_limited_s: f64,
        buffer_limited_s: f64,
        reordering_p: u32,
        delivered_marked_p: u32,
    }
);
table!(
    /// The kernel, one row: its version, how late the samples were, how many were left out because their time had passed
    /// before the one before was taken, how many packets the capture lacks, and how often all TCP together had more
    /// memory than it may.
    Kernel {
        release: String,
        late_mean_s: f64,
        late_max_s: f64,
        samples_left_out: u64,
        capture_lost_p: u64,
        memory_pressures: u64,
    }
);

impl Events {
    /// Adds an event.
    pub fn push(&mut self, time_s: f64, flow: u32, link: u32, happening: Happening, value: f64) {
        self.time_s.push(time_s);
        self.flow.push(flow);
        self.link.push(link);
        self.kind.push(happening as u8);
        self.value.push(value);
    }
}

/// All tables of a run.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Record {
    pub flow_samples: FlowSamples,
    pub queue_samples: QueueSamples,
    pub events: Events,
    pub flows: Flows,
    pub links: Links,
    pub limits: Limits,
    pub kernel: Kernel,
}

impl Record {
    /// The tables by name.
    pub fn tables(self) -> Tables {
        let tables = [
            ("flow_samples", self.flow_samples.columns()),
            ("queue_samples", self.queue_samples.columns()),
            ("events", self.events.columns()),
            ("flows", self.flows.columns()),
            ("links", self.links.columns()),
            ("limits", self.limits.columns()),
            ("kernel", self.kernel.columns()),
        ];
        tables
            .into_iter()
            .map(|(name, columns)| (name.to_owned(), columns))
            .collect()
    }
}
