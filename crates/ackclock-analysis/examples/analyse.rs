//! Analyses captures and prints what was found of each flow, and the speed.
//!
//! `cargo run --release -p ackclock-analysis --example analyse -- FILE…`

use std::io::Write;
use std::path::PathBuf;

use ackclock_analysis::analysis::FileAnalysis;
use ackclock_analysis::output::Options;
use ackclock_analysis::tables::Vantage;
use rustix::time::{clock_gettime, ClockId};

/// Segments that are taken in between two looks at the rows.
const STEP: u64 = 20_000;
/// Flows that are printed.
const SHOWN: usize = 20;

fn main() {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let before_s = cpu_s();
    let mut reading = FileAnalysis::open(&paths, Options::default());
    let mut out = std::io::stdout().lock();
    let mut shown = 0;
    let mut rows = [0; 3];
    loop {
        let more = reading.advance(STEP);
        let tables = reading.drain();
        let flows = &tables.flows;
        for (number, samples) in rows.iter_mut().zip([
            flows.flow.len(),
            tables.flow_samples.flow.len(),
            tables.events.flow.len(),
        ]) {
            *number += samples;
        }
        for row in (0..flows.flow.len()).filter(|&row| flows.data_packets[row] > 0) {
            shown += 1;
            if shown > SHOWN {
                break;
            }
            // A closed pipe is no error of ours.
            let _ = writeln!(
                out,
                "{} {}:{} - {}:{} {} ({:.2}): {} segments, mss {}, iw {}, {:.3} Mbit/s, rtt {:.4} {:.4} s, handshake {:.6} s",
                flows.flow[row],
                flows.client[row],
                flows.client_port[row],
                flows.server[row],
                flows.server_port[row],
                Vantage::NAMES[usize::from(flows.vantage[row])],
                flows.vantage_confidence[row],
                flows.data_segments[row],
                flows.mss[row],
                flows.initial_window[row],
                flows.goodput_bps[row] / 1e6,
                flows.rtt_min_s[row],
                flows.rtt_mean_s[row],
                flows.handshake_s[row],
            );
            let _ = writeln!(
                out,
                "   delivered {} lost {} before {} reordered {} duplicate {} spurious {} capture {} open {}",
                flows.delivered[row],
                flows.lost[row],
                flows.lost_upstream[row],
                flows.reordered[row],
                flows.duplicates[row],
                flows.spurious[row],
                flows.not_captured[row],
                flows.unresolved[row],
            );
            let _ = writeln!(
                out,
                "   again {}: fast {} probe {} timeout {} spurious {} unknown {}; {} timeouts, {} recoveries; limited app {:.2} receiver {:.2} control {:.2} start {:.2} own {:.2} shared {:.2} buffer {:.2} ? {:.2}; {} stalls {:.2} s",
                flows.retransmissions[row],
                flows.retransmissions_fast[row],
                flows.retransmissions_tail_probe[row],
                flows.retransmissions_timeout[row],
                flows.retransmissions_spurious[row],
                flows.retransmissions_unknown[row],
                flows.timeouts[row],
                flows.recoveries[row],
                flows.limited_application_s[row],
                flows.limited_receiver_s[row],
                flows.limited_cwnd_s[row],
                flows.limited_slow_start_s[row],
                flows.limited_bottleneck_s[row],
                flows.limited_shared_bottleneck_s[row],
                flows.limited_send_buffer_s[row],
                flows.limited_unknown_s[row],
                flows.stalls[row],
                flows.stalled_s[row],
            );
        }
        if !more {
            break;
        }
    }
    let spent_s = cpu_s() - before_s;
    let files = reading.files();
    let packets: u64 = files.iter().map(|file| file.counts.packets).sum();
    for file in files.iter().filter(|file| file.note.is_some()) {
        let _ = writeln!(
            out,
            "{}: {}",
            file.path.display(),
            file.note.as_deref().unwrap_or_default()
        );
    }
    let _ = writeln!(
        out,
        "{packets} packets, {} connections, {} flows, {} samples, {} events, {spent_s:.3} CPU s: {:.2} M packets/s",
        reading.analysis.connections(),
        rows[0],
        rows[1],
        rows[2],
        packets as f64 / spent_s / 1e6
    );
}

fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
