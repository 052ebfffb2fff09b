//! The thread that carries packets between devices and the simulation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ackclock_core::Time;
use ackclock_sim::external::{Delivered, ExternalPacket, FlowEnd};
use ackclock_sim::packet::Ecn;
use ackclock_sim::Simulation;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::capture::Capture;
use crate::connections::{direction, Connection, Connections, Route};
use crate::ip::{self, Header};
use crate::lateness::Lateness;
use crate::outside::{Keys, Relay, RELAY_END};

/// A simulation that others look at, too; `None` after a panic in it.
pub type Shared = Arc<Mutex<Option<Simulation>>>;

/// Longest IP packet.
const LONGEST: usize = 1 << 16;
/// Packets that are read of a device at a time.
const BATCH: usize = 64;
/// The last part of a wait, in which the thread does not sleep: a sleeping thread wakes late.
const AWAKE: Time = Time::from_microseconds(60);
/// Longest time without a sleep of the length [`REST`]. Linux leaves 5 % of a processor to the other threads when one of
/// real-time priority takes all of it, in one piece of 50 ms each second; so much is given up here in small pieces.
const LONGEST_WORK: Time = Time::from_milliseconds(1);
/// A sleep that other threads can use: more than 5 % of [`LONGEST_WORK`].
const REST: Time = Time::from_microseconds(60);
/// Longest wait, after which the thread looks whether it shall stop.
const LONGEST_WAIT: Time = Time::from_milliseconds(20);

/// A device of one end, its addresses, and the capture of its packets.
pub struct Device {
    /// A TUN device without packet information, non-blocking.
    pub tun: OwnedFd,
    /// Addresses of the end. Where there are only two ends, every packet goes to the other.
    pub addresses: Vec<IpAddr>,
    /// File of the capture of its packets.
    pub capture: Option<File>,
}

/// Counts of a bridge.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The connections, in the order of their first packets.
    pub connections: Vec<Connection>,
    /// By how much the packets left late.
    pub lateness: Lateness,
    /// Packets that the device of their end did not take.
    pub unwritten: u64,
    /// Reads of something that is no IP packet, and packets to an address that no end has.
    pub unknown: u64,
}

/// Connections that have begun since somebody looked, as they were then.
type Begun = Arc<Mutex<Vec<Connection>>>;

/// A thread that carries packets until it is told to stop.
pub struct Bridge {
    stop: Arc<AtomicBool>,
    begun: Begun,
    keys: Keys,
    number: i32,
    thread: JoinHandle<io::Result<Report>>,
}

impl Bridge {
    /// Begin: the time of the simulation is from now on that of the clock. `routes` have the simulation's external flows.
    /// A relay, if there is one, takes connections with hosts that are no end.
    ///
    /// # Errors
    /// A capture that cannot be written.
    pub fn start(
        simulation: Shared,
        devices: Vec<Device>,
        routes: Vec<Route>,
        relay: Option<Relay>,
    ) -> io::Result<Bridge> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut carrier = Carrier::new(simulation, devices, routes, relay)?;
        let (stopped, begun) = (Arc::clone(&stop), Arc::clone(&carrier.begun));
        let keys = carrier.keys.clone();
        let thread = thread::Builder::new().name("bridge".to_owned());
        let (tell, told) = mpsc::channel();
        let thread = thread.spawn(move || {
            let _ = tell.send(rustix::thread::gettid().as_raw_pid());
            carrier.run(&stopped)
        })?;
        let number = told.recv().map_err(io::Error::other)?;
        Ok(Bridge {
            stop,
            begun,
            keys,
            number,
            thread,
        })
    }

    /// The thread's number in the system.
    pub fn thread_id(&self) -> i32 {
        self.number
    }

    /// Take the connections that have begun since the last call; their counts are of that time.
    pub fn take_begun(&self) -> Vec<Connection> {
        std::mem::take(&mut self.begun.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The keys of all connections, now and later.
    pub fn keys(&self) -> Keys {
        self.keys.clone()
    }

    /// True until the thread has ended, by [`Bridge::stop`] or an error.
    pub fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Stop, and return what was counted.
    ///
    /// # Errors
    /// A device or a capture that failed, or a panic of the simulation.
    pub fn stop(self) -> io::Result<Report> {
        self.stop.store(true, Ordering::Relaxed);
        let panicked = |_| Err(io::Error::other("the simulation failed"));
        self.thread.join().unwrap_or_else(panicked)
    }
}

/// A packet that waits until it is due: the time, the number that keeps the order, the packet.
type Waiting = Reverse<(Time, u64, Entry)>;

/// A delivered packet, which has no order of its own.
struct Entry(Delivered);

impl PartialEq for Entry {
    fn eq(&self, _: &Entry) -> bool {
        true
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, _: &Entry) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

struct End {
    tun: OwnedFd,
    addresses: Vec<IpAddr>,
    capture: Option<Capture>,
}

struct Carrier {
    simulation: Shared,
    ends: Vec<End>,
    connections: Connections,
    begun: Begun,
    keys: Keys,
    relay: Option<Relay>,
    waiting: BinaryHeap<Waiting>,
    delivered: Vec<Delivered>,
    delivered_count: u64,
    report: Report,
    started: Instant,
    /// End of the last sleep that was long enough for others.
    rested: Time,
    buffer: Vec<u8>,
}

impl Carrier {
    fn new(
        simulation: Shared,
        devices: Vec<Device>,
        routes: Vec<Route>,
        relay: Option<Relay>,
    ) -> io::Result<Carrier> {
        let open = |device: Device| -> io::Result<End> {
            Ok(End {
                tun: device.tun,
                addresses: device.addresses,
                capture: device.capture.map(Capture::new).transpose()?,
            })
        };
        Ok(Carrier {
            simulation,
            ends: devices.into_iter().map(open).collect::<io::Result<_>>()?,
            connections: Connections::new(routes),
            begun: Begun::default(),
            keys: Keys::default(),
            relay,
            waiting: BinaryHeap::new(),
            delivered: Vec::new(),
            delivered_count: 0,
            report: Report::default(),
            started: Instant::now(),
            rested: Time::ZERO,
            buffer: vec![0; LONGEST],
        })
    }

    fn now(&self) -> Time {
        Time::from_picoseconds(self.started.elapsed().as_nanos() as u64 * 1000)
    }

    fn run(&mut self, stop: &AtomicBool) -> io::Result<Report> {
        // What is not permitted costs accuracy, which is counted.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        self.started = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let next = self.carry()?;
            self.write_due()?;
            self.wait(next)?;
        }
        for end in &mut self.ends {
            end.capture.as_mut().map_or(Ok(()), Capture::flush)?;
        }
        let mut report = std::mem::take(&mut self.report);
        report.connections = std::mem::take(&mut self.connections.all);
        Ok(report)
    }

    /// Run the simulation up to the present with the packets that have come; returns the time of its next event.
    fn carry(&mut self) -> io::Result<Time> {
        let now = self.now();
        let shared = Arc::clone(&self.simulation);
        let mut guard = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(simulation) = guard.as_mut() else {
            return Err(io::Error::other("the simulation failed"));
        };
        simulation.advance(now);
        let mut entered = false;
        for index in 0..self.ends.len() {
            for _ in 0..BATCH {
                let Some(length) = read(&self.ends[index].tun, &mut self.buffer)? else {
                    break;
                };
                entered |= self.enter(simulation, index, length, now)?;
            }
        }
        for _ in 0..BATCH {
            let Some(relay) = &self.relay else {
                break;
            };
            let Some(length) = read(&relay.icmp, &mut self.buffer)? else {
                break;
            };
            entered |= self.enter(simulation, RELAY_END, length, now)?;
        }
        if entered {
            simulation.advance(now);
        }
        simulation.take_delivered(&mut self.delivered);
        let next = simulation.next_event();
        drop(guard);
        for packet in self.delivered.drain(..) {
            let number = self.delivered_count;
            self.delivered_count += 1;
            self.waiting
                .push(Reverse((packet.due, number, Entry(packet))));
        }
        Ok(next)
    }

    /// The packet in the buffer enters the simulation from a device; returns whether it did.
    fn enter(
        &mut self,
        simulation: &mut Simulation,
        from: usize,
        length: usize,
        now: Time,
    ) -> io::Result<bool> {
        let bytes = &mut self.buffer[..length];
        let mut header = ip::header(bytes);
        let relay = self.relay.as_ref().filter(|_| from == RELAY_END);
        if let (Some(relay), Some(found)) = (relay, header) {
            let (destination, _) = found.key.destination;
            if relay.restore(bytes, destination, &self.connections.all) {
                header = ip::header(bytes);
            }
        }
        if let Some(capture) = &mut self.ends[from].capture {
            capture.write(now, bytes)?;
        }
        let routed = header.and_then(|header| Some((header, self.route(from, &header)?)));
        let Some((header, (route, end))) = routed else {
            self.report.unknown += 1;
            return Ok(false);
        };
        let known = self.connections.all.len();
        let number = self.connections.number((route, end), header.key, now);
        let connection = &mut self.connections.all[number as usize];
        if number as usize == known {
            let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            begun.push(*connection);
            self.keys.push(connection.key);
        }
        connection.count_entered(&header, end, now);
        let packet = ExternalPacket {
            bytes: self.buffer[..length].to_vec(),
            payload_bytes: header.payload_bytes,
            ecn: header.ecn,
            dscp: header.dscp,
            tag: number,
        };
        simulation.enter(connection.flow, end, packet);
        Ok(true)
    }

    /// The route of a packet from a device, and the end at which it enters; `None` if no other end has its address. Hosts
    /// outside are behind the relay's end, if there is a relay.
    fn route(&self, from: usize, header: &Header) -> Option<(usize, FlowEnd)> {
        let (address, _) = header.key.destination;
        let to = if self.ends.len() == 2 {
            1 - from
        } else {
            let mut ends = self.ends.iter();
            let found = ends.position(|end| end.addresses.contains(&address));
            found.or_else(|| self.relay.as_ref().map(|_| RELAY_END))?
        };
        self.connections.route(from, to)
    }

    /// Write the packets that are due.
    fn write_due(&mut self) -> io::Result<()> {
        loop {
            let now = self.now();
            if self
                .waiting
                .peek()
                .is_none_or(|Reverse((due, _, _))| *due > now)
            {
                return Ok(());
            }
            if let Some(Reverse((due, _, Entry(delivered)))) = self.waiting.pop() {
                self.report.lateness.count(now.since(due));
                self.write(delivered, now)?;
            }
        }
    }

    fn write(&mut self, delivered: Delivered, now: Time) -> io::Result<()> {
        let mut packet = delivered.packet;
        if packet.ecn == Ecn::Ce {
            ip::mark(&mut packet.bytes);
        }
        let entered = match delivered.end {
            FlowEnd::Sender => FlowEnd::Receiver,
            FlowEnd::Receiver => FlowEnd::Sender,
        };
        let connection = &mut self.connections.all[packet.tag as usize];
        let crossed = delivered.due.since(delivered.sent);
        connection.count_delivered(packet.payload_bytes, entered, crossed, now);
        let index = connection.ends[direction(delivered.end)];
        let key = connection.key.reversed();
        let end = &mut self.ends[index];
        if let Some(capture) = &mut end.capture {
            capture.write(now, &packet.bytes)?;
        }
        if let Some(relay) = self.relay.as_ref().filter(|_| index == RELAY_END) {
            let is_outside = !end.addresses.contains(&key.destination.0);
            if is_outside && ip::ICMP.contains(&key.protocol) {
                if rustix::io::write(&relay.icmp, &packet.bytes).is_err() {
                    self.report.unwritten += 1;
                }
                return Ok(());
            }
            if is_outside && !relay.redirect(&mut packet.bytes, packet.tag, &key) {
                self.report.unknown += 1;
                return Ok(());
            }
        }
        if rustix::io::write(&end.tun, &packet.bytes).is_err() {
            self.report.unwritten += 1;
        }
        Ok(())
    }

    /// Wait for a packet, until the simulation or a packet is due.
    fn wait(&mut self, next: Time) -> io::Result<()> {
        let due = self
            .waiting
            .peek()
            .map_or(Time::NEVER, |Reverse((due, _, _))| *due);
        let began = self.now();
        let wait = next.min(due).since(began).min(LONGEST_WAIT);
        let asleep = wait.since(AWAKE).picoseconds() / 1000;
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: asleep as _,
        };
        let sources = self.ends.iter().map(|end| end.tun.as_fd());
        let sources = sources.chain(self.relay.iter().map(|relay| relay.icmp.as_fd()));
        let mut ready: Vec<_> = sources
            .map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN))
            .collect();
        match poll(&mut ready, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ended = self.now();
        if ended.since(began) >= REST {
            self.rested = ended;
        } else if ended.since(self.rested) > LONGEST_WORK {
            thread::sleep(Duration::from_nanos(REST.picoseconds() / 1000));
            self.rested = self.now();
        }
        Ok(())
    }
}

/// Read a packet; returns its length, `None` if there is none.
fn read(source: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match rustix::io::read(source, buffer) {
        Ok(0) | Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Ok(length) => Ok(Some(length)),
        Err(error) => Err(error.into()),
    }
}
