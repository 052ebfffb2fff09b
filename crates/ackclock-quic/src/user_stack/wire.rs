//! Requests and responses as bytes; `host.py` describes them.

use ackclock_core::Time;
use ackclock_plan::StackPlan;
use noq_proto::EcnCodepoint;

use crate::endpoint::{Datagram, Role};

/// First byte of a response: the call was made.
pub const OK: u8 = 0;
/// First byte of a response: the library broke the contract.
pub const BROKEN: u8 = 1;

/// Bits of a state's `status`.
pub const ESTABLISHED: u32 = 1;
/// All that was written is acknowledged.
pub const FINISHED: u32 = 2;
/// The connection is over.
pub const CLOSED: u32 = 4;

/// A time or a number that is not there.
const NONE: u64 = u64::MAX;
/// Picoseconds of a nanosecond, the unit of times in the protocol.
const NANOSECOND: u64 = 1000;

/// A call.
pub enum Request<'a> {
    /// Make an endpoint.
    New {
        plan: &'a StackPlan,
        role: Role,
        stop: Time,
        seed: u64,
    },
    /// A datagram has arrived.
    Datagram(&'a [u8], Option<EcnCodepoint>),
    /// A timer is due.
    Timer,
}

/// An endpoint after a call.
#[derive(Debug, PartialEq)]
pub struct State {
    pub timeout: Time,
    pub read_bytes: u64,
    pub status: u32,
    /// Window, threshold, RTT in ns, in flight, losses, recoveries, timeouts.
    pub statistics: [Option<u64>; 7],
    pub datagrams: Vec<Datagram>,
}

/// A time of the protocol.
pub fn time(nanoseconds: u64) -> Time {
    if nanoseconds == NONE {
        Time::NEVER
    } else {
        Time::from_picoseconds(nanoseconds.saturating_mul(NANOSECOND))
    }
}

fn nanoseconds(time: Time) -> u64 {
    if time.is_never() {
        NONE
    } else {
        time.nanoseconds()
    }
}

impl Request<'_> {
    /// Name of the call in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Request::New { .. } => "ackclock_new",
            Request::Datagram(..) => "the call for a datagram",
            Request::Timer => "the call for a timer",
        }
    }

    /// The frame of the request, with its length.
    pub fn frame(&self, endpoint: u32, now: Time) -> Vec<u8> {
        let mut frame = vec![0; 4];
        frame.push(match self {
            Request::New { .. } => b'N',
            Request::Datagram(..) => b'D',
            Request::Timer => b'T',
        });
        frame.extend(endpoint.to_le_bytes());
        frame.extend(nanoseconds(now).to_le_bytes());
        match self {
            Request::New {
                plan,
                role,
                stop,
                seed,
            } => write_opening(&mut frame, plan, *role, *stop, *seed),
            Request::Datagram(bytes, ecn) => {
                frame.push(ecn.map_or(0, |codepoint| codepoint as u8));
                frame.extend_from_slice(bytes);
            }
            Request::Timer => {}
        }
        let length = frame.len() as u32 - 4;
        frame[..4].copy_from_slice(&length.to_le_bytes());
        frame
    }
}

fn write_opening(frame: &mut Vec<u8>, plan: &StackPlan, role: Role, stop: Time, seed: u64) {
    let size_bytes = match role {
        Role::Client => plan.size_bytes.unwrap_or(NONE),
        Role::Server => 0,
    };
    frame.push(u8::from(role == Role::Server));
    frame.push(u8::from(plan.ecn));
    frame.extend(u32::from(plan.max_payload_bytes).to_le_bytes());
    for number in [
        seed,
        plan.initial_window_bytes,
        plan.receive_window_bytes,
        size_bytes,
        nanoseconds(stop),
    ] {
        frame.extend(number.to_le_bytes());
    }
    for text in [&plan.congestion, &plan.options] {
        frame.extend_from_slice(text.as_bytes());
        frame.push(0);
    }
}

impl State {
    /// Read a response without its first byte; none if it is not one.
    pub fn read(content: &[u8]) -> Option<State> {
        let mut rest = content;
        let timeout = time(number(&mut rest)?);
        let read_bytes = number(&mut rest)?;
        let status = short(&mut rest)?;
        let mut statistics = [None; 7];
        for statistic in &mut statistics {
            *statistic = Some(number(&mut rest)?).filter(|&value| value != NONE);
        }
        let count = short(&mut rest)?;
        let datagrams: Option<Vec<Datagram>> = (0..count).map(|_| datagram(&mut rest)).collect();
        Some(State {
            timeout,
            read_bytes,
            status,
            statistics,
            datagrams: datagrams.filter(|_| rest.is_empty())?,
        })
    }
}

fn datagram(rest: &mut &[u8]) -> Option<Datagram> {
    let length = short(rest)? as usize;
    let (&ecn, content) = rest.split_first()?;
    let (bytes, after) = content.split_at_checked(length)?;
    *rest = after;
    Some(Datagram {
        bytes: bytes.to_vec(),
        ecn: EcnCodepoint::from_bits(ecn),
    })
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*bytes))
}

fn short(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*bytes))
}
