//! Flows whose control is known: CSVs with a line a packet, and captures of the packet engine.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use ackclock_capture::files::Capture;
use ackclock_capture::packet::Flags;
use ackclock_replay::series::Series;
use ackclock_units::Time;
use flate2::read::GzDecoder;

use super::tracker::{Seen, Tracker};

/// Reads a `.csv.gz` of tshark's fields: number, clock, frame bytes, sequence, destination, its port, time in the
/// connection, payload, acknowledgement, source port, time.
pub fn csv(path: &Path) -> Series {
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the file is there");
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("it is text");
    let mut tracker = Tracker::new(48, None, false);
    let mut syn = None;
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line
            .split(',')
            .map(|field| field.trim_matches('"'))
            .collect();
        let (Ok(sequence), Ok(time_s)) = (fields[3].parse::<u64>(), fields[10].parse()) else {
            continue;
        };
        let now = Time::from_seconds(time_s);
        let bytes: u32 = fields[7].parse().unwrap_or(0);
        let ack: u64 = fields[8].parse().unwrap_or(0);
        if fields[5] == "5000" {
            if bytes > 0 {
                tracker.see(now, Seen::Data(sequence - 1, bytes));
            } else if sequence == 0 {
                syn = Some(now);
            }
        } else if ack > 0 {
            if sequence == 0 {
                let handshake = syn.map(|syn| now.since(syn));
                tracker = Tracker::new(48, handshake, false);
            } else {
                tracker.see(now, Seen::Ack(ack - 1, Vec::new(), false));
            }
        }
    }
    tracker.series
}

/// The flows of a capture at their senders, which connect.
pub fn captured(path: PathBuf) -> Vec<Series> {
    let mut flows: BTreeMap<_, (u32, u32, Time, Tracker)> = BTreeMap::new();
    for segment in Capture::open(&[path]) {
        let now = Time::from_picoseconds(segment.time_ns.unwrap_or(0) as u64 * 1000);
        let flags = segment.flags;
        let (there, back) = (
            (segment.source, segment.destination),
            (segment.destination, segment.source),
        );
        if flags.has(Flags::SYN) && !flags.has(Flags::ACK) {
            let tracker = Tracker::new(1448, None, true);
            flows.insert(there, (segment.sequence, 0, now, tracker));
        } else if let Some((first, _, _, tracker)) = flows.get_mut(&there) {
            if segment.payload_bytes > 0 {
                let at = segment.sequence.wrapping_sub(*first).wrapping_sub(1);
                tracker.see(now, Seen::Data(u64::from(at), segment.payload_bytes));
            }
        } else if let Some((first, _, at, tracker)) = flows.get_mut(&back) {
            if flags.has(Flags::SYN) {
                *tracker = Tracker::new(1448, Some(now.since(*at)), true);
                continue;
            }
            let relative = |number: u32| u64::from(number.wrapping_sub(*first).wrapping_sub(1));
            let blocks = segment.options.sack[..usize::from(segment.options.sack_blocks)]
                .iter()
                .map(|&(from, to)| (relative(from), relative(to)))
                .collect();
            tracker.see(
                now,
                Seen::Ack(
                    relative(segment.acknowledgement),
                    blocks,
                    flags.has(Flags::ECE),
                ),
            );
        }
    }
    flows
        .into_values()
        .map(|(_, _, _, tracker)| tracker.series)
        .collect()
}
