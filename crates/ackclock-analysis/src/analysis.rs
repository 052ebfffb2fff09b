//! Analysis of captures as a whole: packets in, rows out.

use std::path::{Path, PathBuf};

use crate::connections::Connections;
use crate::icmp::{IcmpLog, IcmpReport};
use crate::output::{Options, Output};
use crate::path;
use crate::series::Arrival;
use crate::tables::Tables;
use crate::udp::UdpFlows;
use ackclock_pcap::files::{Capture, Counts, Packet};
use ackclock_pcap::filter::Filter;
use ackclock_pcap::packet::{Datagram, IcmpError, Segment};

/// Longer than any capture: 4.5 years. Times of damaged files stay within.
const LONGEST_NS: i64 = 1 << 57;
/// Flows that end before somebody takes their rows.
const MAX_FLOWS: usize = 8192;
/// Packets that several queues of an interface captured are out of order by less: beyond that the clock was set.
const CLOCK_SET_NS: i64 = 50_000_000;
/// Packets of several interfaces are out of order by less.
const LATE_BLOCK_NS: i64 = 1_000_000_000;

/// The analysis of segments, in the order of the capture. A packet that was seen before counts in its file only.
#[derive(Debug)]
pub struct Analysis {
    connections: Connections,
    udp: UdpFlows,
    icmp: IcmpLog,
    /// Rows since the last were taken, and the series of the paths.
    pub output: Output,
    origin_ns: Option<i64>,
    now_ns: Option<i64>,
    segments: u64,
    clamped_timestamps: u64,
    /// By how much the clock was set back so far: the time goes on as if it had not been.
    set_back_ns: i64,
    clock_steps: u64,
    /// File, interface and captured time of the packet before.
    previous: Option<(u32, u32, i64)>,
}

impl Analysis {
    /// Begin.
    pub fn new(options: Options) -> Self {
        Self {
            connections: Connections::within(options.max_bytes),
            udp: UdpFlows::default(),
            icmp: IcmpLog::default(),
            output: Output::new(options),
            origin_ns: None,
            now_ns: None,
            segments: 0,
            clamped_timestamps: 0,
            set_back_ns: 0,
            clock_steps: 0,
            previous: None,
        }
    }

    /// Take a segment in; one without a time has that of the one before.
    #[inline]
    pub fn take(&mut self, segment: &Segment) {
        if segment.duplicate {
            return;
        }
        let now_ns = self.time_ns(segment.time_ns, (segment.file, segment.interface));
        self.now_ns = Some(now_ns);
        self.segments += 1;
        self.connections.take(segment, now_ns, &mut self.output);
    }

    /// Take a datagram in; one without a time has that of the packet before.
    #[cold]
    pub fn take_datagram(&mut self, datagram: &Datagram) {
        if datagram.duplicate {
            return;
        }
        let now_ns = self.time_ns(datagram.time_ns, (datagram.file, datagram.interface));
        self.now_ns = Some(now_ns);
        self.udp.take(datagram, now_ns);
    }

    /// Return the flows of UDP.
    pub fn udp(&self) -> &UdpFlows {
        &self.udp
    }

    /// Take ICMP errors in that were captured before the last segment.
    #[cold]
    pub fn take_icmp_errors(&mut self, errors: &[IcmpError]) {
        let now_ns = self.now_ns.unwrap_or(0);
        for error in errors {
            let time_ns = error.time_ns.zip(self.origin_ns);
            let since_ns = time_ns.map_or(now_ns, |(time_ns, origin_ns)| {
                let since_ns = time_ns.saturating_sub(origin_ns);
                since_ns.clamp(-LONGEST_NS, LONGEST_NS) + self.set_back_ns
            });
            let since_ns = since_ns.clamp(0, LONGEST_NS);
            if error.is_udp {
                self.udp.take_icmp_error(error, since_ns);
            } else if let Some(flow) = self.connections.flow(error.source, error.destination) {
                self.icmp.count(error, flow, since_ns);
            }
        }
    }

    /// Return the ICMP errors about TCP connections that were open.
    pub fn icmp_reports(&self) -> Vec<IcmpReport> {
        self.icmp.reports()
    }

    /// The time since the first packet, of one captured on an interface of a file. Where it goes back by a little it stays, as order decides; by more, somebody
    /// has set the clock, and the time goes on from there.
    #[inline]
    fn time_ns(&mut self, time_ns: Option<i64>, (file, interface): (u32, u32)) -> i64 {
        let Some(before_ns) = self.now_ns else {
            self.origin_ns = time_ns;
            return 0;
        };
        let Some(time_ns) = time_ns else {
            return before_ns;
        };
        let origin_ns = *self.origin_ns.get_or_insert(time_ns);
        let since_ns = time_ns.saturating_sub(origin_ns);
        let now_ns = since_ns.clamp(-LONGEST_NS, LONGEST_NS);
        self.clamped_timestamps += u64::from(now_ns != since_ns);
        let captured = (file, interface, now_ns);
        let previous = self.previous.replace(captured);
        let now_ns = (now_ns + self.set_back_ns).min(LONGEST_NS);
        if now_ns >= before_ns {
            return now_ns;
        }
        // Interfaces hand over their packets in blocks, which may be late by a part of a second.
        let is_step = match previous {
            Some((file, interface, previous_ns))
                if (file, interface) == (captured.0, captured.1) =>
            {
                previous_ns - captured.2 >= CLOCK_SET_NS
            }
            _ => before_ns - now_ns >= LATE_BLOCK_NS,
        };
        if is_step {
            self.set_back_ns += before_ns - now_ns;
            self.clock_steps += 1;
        }
        before_ns
    }

    /// Return how often the capture's clock was set back, and by how much in all, in seconds.
    pub fn clock_steps(&self) -> (u64, f64) {
        (self.clock_steps, self.set_back_ns as f64 * 1e-9)
    }

    /// End what is open.
    pub fn finish(&mut self) {
        self.finish_some(u64::MAX);
    }

    /// End at most so many of the connections that are open; false when none is left.
    pub fn finish_some(&mut self, most: u64) -> bool {
        self.connections.finish_some(most, &mut self.output)
    }

    /// Connections so far.
    pub fn connections(&self) -> u32 {
        self.connections.begun()
    }

    /// Return how many connections were ended early because memory was short.
    pub fn evicted_connections(&self) -> u32 {
        self.connections.evicted_connections()
    }

    /// Segments so far, without those seen twice.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Return how many segments have timestamps further from the first than any capture lasts; they are clamped to 4.5
    /// years from it.
    pub fn clamped_timestamps(&self) -> u64 {
        self.clamped_timestamps
    }

    /// When the first packet was captured, in nanoseconds since 1970, if the capture has times.
    pub fn origin_ns(&self) -> Option<i64> {
        self.origin_ns
    }

    /// Return the time from the first packet to the last, in seconds.
    pub fn duration_s(&self) -> f64 {
        self.now_ns.unwrap_or(0) as f64 * 1e-9
    }
}

/// A report on one file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The path, or `-`.
    pub path: PathBuf,
    /// Its packet counts.
    pub counts: Counts,
    /// No packet could be read.
    pub is_unreadable: bool,
    /// Why it, or its rest, could not be read.
    pub note: Option<String>,
    /// Packets that the capturing host dropped, as recorded in the file.
    pub dropped: Option<u64>,
}

/// Files under analysis, to be taken in as fast as is wanted.
#[derive(Debug)]
pub struct FileAnalysis {
    capture: Capture,
    /// The analysis.
    pub analysis: Analysis,
    ended: bool,
    /// All paths share one limit.
    shared: bool,
}

impl FileAnalysis {
    /// Open files; those that cannot be read say so in [`FileAnalysis::files`].
    pub fn open<P: AsRef<Path>>(paths: &[P], options: Options) -> Self {
        Self::filtered(paths, Filter::default(), options)
    }

    /// Open files, for the packets that match a filter.
    pub fn filtered<P: AsRef<Path>>(paths: &[P], filter: Filter, options: Options) -> Self {
        Self {
            capture: Capture::filtered(paths, filter),
            analysis: Analysis::new(options),
            ended: false,
            shared: false,
        }
    }

    /// Take in at most so many segments, fewer when many connections end meanwhile; false when nothing is left.
    pub fn advance(&mut self, segments: u64) -> bool {
        let enough = self.analysis.output.tables.flows.flow.len() + MAX_FLOWS;
        for _ in 0..segments {
            if self.ended || self.analysis.output.tables.flows.flow.len() >= enough {
                break;
            }
            match self.capture.next_packet() {
                Some(Packet::Segment(segment)) => self.analysis.take(segment),
                Some(Packet::Datagram(datagram)) => self.analysis.take_datagram(datagram),
                None => self.ended = true,
            }
            if self.capture.has_icmp_errors() {
                let errors = self.capture.take_icmp_errors();
                self.analysis.take_icmp_errors(&errors);
            }
        }
        !self.ended || self.analysis.finish_some(MAX_FLOWS as u64)
    }

    /// Take the accumulated rows.
    pub fn drain(&mut self) -> Tables {
        std::mem::take(&mut self.analysis.output.tables)
    }

    /// Return what limits the path with the most data, or all paths pooled if they show one limit at least as clearly:
    /// hosts often share their link, and then a single path is no evidence. None without data.
    pub fn path(&mut self) -> Option<path::Path> {
        let busiest = self.busiest()?;
        let all = &self.analysis.output.series;
        self.shared = self.analysis.output.paths() == 1;
        if self.shared {
            return Some(path::limiter(&all.arrivals, &all.rtts));
        }
        let pooled = path::fit(&all.arrivals, &all.rtts);
        let most = all.of(busiest);
        let single = path::fit_with(&most.arrivals, &most.rtts, &pooled);
        drop(most);
        self.shared = pooled.has_rate() && pooled.strength() >= single.strength();
        Some(if self.shared {
            pooled.path()
        } else {
            single.path()
        })
    }

    /// Return the bucket level of that path at a rate, at about four times as many instants as requested.
    pub fn levels(&self, rate_bps: f64, most: usize) -> Vec<path::Level> {
        let all = &self.analysis.output.series;
        let levels = |arrivals: &[Arrival]| path::levels(arrivals, rate_bps, most);
        match self.busiest().filter(|_| rate_bps > 0.0) {
            None => Vec::new(),
            Some(_) if self.shared => levels(&all.arrivals),
            Some(busiest) => levels(&all.of(busiest).arrivals),
        }
    }

    /// The path with the most bytes.
    fn busiest(&self) -> Option<u16> {
        let output = &self.analysis.output;
        let mut bytes = vec![0; output.paths()];
        for arrival in &output.series.arrivals {
            bytes[usize::from(arrival.path)] += u64::from(arrival.bytes);
        }
        (0..)
            .zip(&bytes)
            .max_by_key(|&(_, bytes)| bytes)
            .map(|(path, _)| path)
    }

    /// Return a report on each file.
    pub fn files(&self) -> Vec<FileReport> {
        let report = |file: &ackclock_pcap::files::File| FileReport {
            path: file.path().to_owned(),
            counts: *file.counts(),
            is_unreadable: file.is_unreadable(),
            note: file.reason().map(ToString::to_string),
            dropped: file.dropped(),
        };
        self.capture.files().iter().map(report).collect()
    }
}

/// Analyse files as a whole.
pub fn analyse<P: AsRef<Path>>(paths: &[P], options: Options) -> (Tables, FileAnalysis) {
    let mut reading = FileAnalysis::open(paths, options);
    while reading.advance(u64::MAX) {}
    let tables = reading.drain();
    (tables, reading)
}
