//! A conversation as text, as a capture at the sender would show it.
//!
//! ```text
//!   0 > syn                 the sender sends
//! 100 < syn/ack             the sender receives
//! 100 ! recovery            something worth an event
//! 100 > data 0..10          ten segments immediately; a second sending says `again`, one with the FIN says `fin`
//! 200 < ack 1 sack 2..10    next segment expected, and the blocks, the most recent first
//! 300 > data 10 ect cwr     ECT(0) (`ect1` is ECT(1)), and congestion window reduced
//! 400 < ack 11 ece          an echo of marks; where they are counted `marks 3`
//! 500 < ack 12 closed       a window of zero
//! ```
//!
//! Times are in milliseconds, exact to the picosecond.

use std::iter;

use ackclock_core::tables::EventKind;
use ackclock_core::Time;
use ackclock_plan::EcnMode;
use ackclock_sim::packet::{Ecn, Kind, Packet};

/// A line of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// Data segments from the first up to the second number, and what else their headers say.
    Data(u64, u64, String),
    /// Anything else that the sender sends.
    Sent(String),
    /// A packet that it receives.
    Received(String),
    /// An event that it reports.
    Happened(String),
}

/// Lines with their times, in the order in which they came.
#[derive(Default)]
pub struct Transcript {
    lines: Vec<(Time, Line)>,
    /// True if marks are counted, and not just echoed.
    counts_marks: bool,
}

impl Transcript {
    /// An empty one of a flow with this feedback of marks.
    pub fn new(ecn: EcnMode) -> Transcript {
        Transcript {
            counts_marks: matches!(ecn, EcnMode::Accurate | EcnMode::L4s),
            ..Transcript::default()
        }
    }

    /// Write down a packet of the sender's.
    pub fn sends(&mut self, now: Time, packet: &Packet) {
        match packet.kind {
            Kind::Data | Kind::DataFin => self.sends_data(now, packet),
            kind => {
                let text = name(kind).to_owned() + &bits(packet);
                self.lines.push((now, Line::Sent(text)));
            }
        }
    }

    /// Add to the line before if that goes on from it.
    fn sends_data(&mut self, now: Time, packet: &Packet) {
        let bits = bits(packet);
        if let Some((at, Line::Data(_, end, before))) = self.lines.last_mut() {
            if *at == now && *end == packet.sequence && *before == bits {
                *end += 1;
                return;
            }
        }
        let line = Line::Data(packet.sequence, packet.sequence + 1, bits);
        self.lines.push((now, line));
    }

    /// Write down a packet of the receiver's.
    pub fn receives(&mut self, now: Time, packet: &Packet, blocks: &[(u64, u64)]) {
        let mut text = match packet.kind {
            Kind::SynAck | Kind::ClientSyn | Kind::Request if packet.flags.is_retransmitted() => {
                name(packet.kind).to_owned() + " again"
            }
            Kind::SynAck | Kind::ClientSyn | Kind::Request => name(packet.kind).to_owned(),
            kind => format!("{} {}", name(kind), packet.number()),
        };
        if packet.flags.has_dsack() && packet.kind == Kind::Ack {
            text += " dsack";
        }
        if packet.window() == 0 {
            text += " closed";
        }
        text = match packet.flags.echo() {
            0 => text,
            count if self.counts_marks => format!("{text} marks {count}"),
            _ => text + " ece",
        };
        let sack = if blocks.is_empty() { "" } else { " sack" };
        let ranges = blocks.iter().map(|&(start, end)| range(start, end));
        let words: Vec<String> = iter::once(text + sack).chain(ranges).collect();
        let text = words.join(" ");
        self.lines.push((now, Line::Received(text)));
    }

    /// Write down what the sender reports, but for what the packets show.
    pub fn happens(&mut self, now: Time, happening: EventKind) {
        let shown = [
            EventKind::Retransmission,
            EventKind::SynRetransmission,
            EventKind::Established,
        ];
        if !shown.contains(&happening) {
            let text = EventKind::NAMES[happening as usize].to_owned();
            self.lines.push((now, Line::Happened(text)));
        }
    }

    /// All of it.
    pub fn text(&self) -> String {
        self.lines.iter().map(write).collect()
    }

    /// Packets and events of the sender.
    pub fn sent(&self) -> String {
        let mut sent: Vec<(Time, Line)> = Vec::new();
        for (time, line) in &self.lines {
            match (sent.last_mut(), line) {
                (_, Line::Received(_)) => {}
                (Some((at, Line::Data(_, end, again))), Line::Data(start, next, anew))
                    if at == time && end == start && again == anew =>
                {
                    *end = *next;
                }
                _ => sent.push((*time, line.clone())),
            }
        }
        sent.iter().map(write).collect()
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Syn | Kind::ClientSyn => "syn",
        Kind::SynAck | Kind::ServerSynAck => "syn/ack",
        Kind::Data | Kind::DataFin => "data",
        Kind::Request => "request",
        Kind::Datagram => "datagram",
        Kind::Echo => "echo",
        Kind::Fin => "fin",
        Kind::Ack | Kind::LastAck => "ack",
        Kind::FinAck => "fin/ack",
        Kind::WindowProbe => "window probe",
    }
}

/// Header fields of a sender's packet besides its number.
fn bits(packet: &Packet) -> String {
    let mut bits = String::new();
    if packet.kind == Kind::DataFin {
        bits += " fin";
    }
    if packet.flags.is_retransmitted() {
        bits += " again";
    }
    bits += match packet.ecn() {
        Ecn::NotEct => "",
        Ecn::Ect0 => " ect",
        Ecn::Ect1 => " ect1",
        Ecn::Ce => " ce",
    };
    if packet.flags.echo() > 0 {
        bits += " cwr";
    }
    bits
}

fn write((time, line): &(Time, Line)) -> String {
    let time = milliseconds(*time);
    match line {
        Line::Data(start, end, bits) => format!("{time} > data {}{bits}\n", range(*start, *end)),
        Line::Sent(text) => format!("{time} > {text}\n"),
        Line::Received(text) => format!("{time} < {text}\n"),
        Line::Happened(text) => format!("{time} ! {text}\n"),
    }
}

fn range(start: u64, end: u64) -> String {
    if end == start + 1 {
        start.to_string()
    } else {
        format!("{start}..{end}")
    }
}

/// A time in milliseconds, all digits.
fn milliseconds(time: Time) -> String {
    const PICOSECONDS: u64 = 1_000_000_000;
    let (whole, rest) = (
        time.picoseconds() / PICOSECONDS,
        time.picoseconds() % PICOSECONDS,
    );
    let text = format!("{whole}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Assert that a transcript is the expected one. In the expected one, blanks at the ends of a line
/// and what follows a `#` do not count.
///
/// # Panics
/// If they differ: with both, and the first line that does.
#[track_caller]
pub fn assert_reads(transcript: &str, expected: &str) {
    let (found, expected) = (lines(transcript), lines(expected));
    if found == expected {
        return;
    }
    let first = found
        .iter()
        .zip(&expected)
        .take_while(|(a, b)| a == b)
        .count();
    panic!(
        "line {} differs: found {:?}, expected {:?}\nfound:\n  {}\nexpected:\n  {}\n",
        first + 1,
        found.get(first),
        expected.get(first),
        found.join("\n  "),
        expected.join("\n  "),
    );
}

fn lines(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}
