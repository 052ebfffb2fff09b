//! Reads captures and prints what is in each; without arguments, the speed on two million packets of headers.
//!
//! `cargo run --release -p ackclock-analysis --example read -- [FILE…]`

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use ackclock_pcap::files::Capture;
use ackclock_pcap::savefile;
use rustix::time::{clock_gettime, ClockId};

/// Packets of the made capture.
const PACKETS: u32 = 2_000_000;

fn main() {
    let named: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let made = std::env::temp_dir().join(format!("ackclock-{}.pcap", std::process::id()));
    let paths = if named.is_empty() {
        fs::write(&made, headers_only()).expect("there is room for the made capture");
        vec![made.clone()]
    } else {
        named
    };
    let before_s = cpu_s();
    let mut capture = Capture::open(&paths);
    let payload: u64 = capture
        .by_ref()
        .map(|segment| u64::from(segment.payload_bytes))
        .sum();
    let spent_s = cpu_s() - before_s;
    let mut out = std::io::stdout().lock();
    let mut packets = 0;
    for file in capture.files() {
        packets += file.counts().packets;
        let reason = file
            .reason()
            .map(|reason| format!("\n  {reason}"))
            .unwrap_or_default();
        // A closed pipe is no error of ours.
        let _ = writeln!(
            out,
            "{}: {:?}{reason}",
            file.path().display(),
            file.counts()
        );
    }
    let rate = packets as f64 / spent_s / 1e6;
    let _ = writeln!(
        out,
        "{packets} packets, {payload} bytes of payload, {spent_s:.3} CPU s: {rate:.2} M packets/s"
    );
    let _ = fs::remove_file(made);
}

fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Data and acknowledgements in turns, with timestamps, cut behind the headers.
fn headers_only() -> Vec<u8> {
    let mut file = savefile::header();
    for number in 0..PACKETS {
        let data = number % 2 == 0;
        let payload: u16 = if data { 1448 } else { 0 };
        let mut frame = [0; 66];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[16..18].copy_from_slice(&(52 + payload).to_be_bytes());
        frame[22..24].copy_from_slice(&[64, 6]);
        frame[29] = if data { 1 } else { 2 };
        frame[33] = 3 - frame[29];
        frame[38..42].copy_from_slice(&(number * 724).to_be_bytes());
        frame[46..48].copy_from_slice(&[0x80, 0x10]);
        frame[54..58].copy_from_slice(&[1, 1, 8, 10]);
        file.extend(savefile::record_header(
            u64::from(number) * 1000,
            66,
            66 + u32::from(payload),
        ));
        file.extend(frame);
    }
    file
}
