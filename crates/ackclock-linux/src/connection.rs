//! One TCP connection: its two sockets, what its applications do, and what is known of it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use ackclock_core::tables::UNKNOWN;
use ackclock_core::{Rate, Time};
use ackclock_traffic::{Reads, SlowReader, Writes};
use rustix::io::ioctl_fionread;
use rustix::net::{recv, send, shutdown, sockopt, RecvFlags, SendFlags, Shutdown};

use crate::info::{Info, LOSS, RECOVERY};
use crate::store::{Sink, Source};
use crate::sys;

/// Most bytes that are taken out of a socket at once.
const READ_BYTES: usize = 1 << 30;
/// The bytes that one connection writes to a disk before the others are served.
const TURN_BYTES: u64 = 1 << 20;

/// The length of a SYN's additional options: MSS and window scale, padded (RFC 9293, RFC 7323).
const SYN_OPTIONS_BYTES: u64 = 8;

/// Flags that request a timestamp when the next bytes written are acknowledged
/// (Documentation/networking/timestamping.rst).
const TIMESTAMP_ACKED: u32 = libc::SOF_TIMESTAMPING_TX_ACK | libc::SOF_TIMESTAMPING_OPT_TSONLY;

/// The payload of generated data.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// The parameters of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Bytes to transfer; none: endless.
    pub size_bytes: Option<u64>,
    /// The receiver opens the connection and sends a request of this size.
    pub request_bytes: Option<u32>,
    /// Rate at which the application writes.
    pub rate: Option<Rate>,
    /// The receiver's application, if it does not read at once.
    pub slow_reader: Option<SlowReader>,
    /// The sender's application, if it writes messages.
    pub writes: Option<Writes>,
    /// Payload of a segment, by which such an application writes.
    pub mss_bytes: u32,
    /// Headers of a segment with its options.
    pub header_bytes: u32,
}

impl Task {
    /// Return true if the receiver may be woken at a low-water mark: it reads whatever has arrived, and the kernel
    /// acknowledges the small segments of messages when they are read.
    pub fn has_low_water(&self) -> bool {
        self.slow_reader.is_none() && self.writes.is_none()
    }
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// All that there was.
    Drained,
    /// More data may be available after the other connections are served.
    More,
    /// The end of the data.
    End,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    pub task: Task,
    pub sender: Option<OwnedFd>,
    pub receiver: Option<OwnedFd>,
    /// Bytes that the application has yet to write; `u64::MAX`: without end.
    unwritten: u64,
    written: u64,
    /// Bytes of the request that have yet to arrive.
    unread_request: u32,
    /// When an application of a given rate writes again.
    writes_at: Time,
    is_shut: bool,
    /// Bytes that the receiver has read.
    pub received: u64,
    /// The reads of a slow reader, the time of the next, and that for which it was scheduled.
    reads: Option<Reads>,
    reads_at: Time,
    read_scheduled: Time,
    /// True once the receiver knows that no more data come.
    has_ended: bool,
    /// Packets that the receiver has got.
    pub received_packets: u64,
    pub start: Time,
    pub established: Time,
    pub finished: Time,
    /// The sender's last sample of `TCP_INFO`.
    pub info: Info,
    pub counts: Counts,
    pub at_warmup: Counts,
    /// True if other transfers wait for this one's completion.
    pub is_awaited: bool,
}

/// Counts of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counts {
    pub delivered_bytes: u64,
    pub sent_packets: u64,
    pub retransmissions: u64,
    pub spurious: u64,
    pub syn_retransmissions: u64,
    pub timeouts: u64,
    pub recoveries: u64,
}

impl Counts {
    /// The counts of a UDP flow before its first datagram.
    pub const NO_DATAGRAMS: Counts = Counts {
        delivered_bytes: 0,
        sent_packets: 0,
        retransmissions: UNKNOWN,
        spurious: UNKNOWN,
        syn_retransmissions: UNKNOWN,
        timeouts: UNKNOWN,
        recoveries: UNKNOWN,
    };
}

impl Connection {
    /// A connection that begins now.
    pub fn new(task: Task, start: Time, is_awaited: bool) -> Connection {
        Connection {
            task,
            sender: None,
            receiver: None,
            unwritten: task.size_bytes.unwrap_or(u64::MAX),
            written: 0,
            unread_request: task.request_bytes.unwrap_or(0),
            writes_at: Time::ZERO,
            is_shut: false,
            received: 0,
            reads: task.slow_reader.map(Reads::new),
            reads_at: Time::NEVER,
            read_scheduled: Time::NEVER,
            has_ended: false,
            received_packets: 0,
            start,
            established: Time::NEVER,
            finished: Time::NEVER,
            info: Info::default(),
            counts: Counts::default(),
            at_warmup: Counts::default(),
            is_awaited,
        }
    }

    /// Return true if the receiver has opened it.
    pub fn is_receiver_initiated(&self) -> bool {
        self.task.request_bytes.is_some()
    }

    /// Return true if the sender has shut its direction down.
    pub fn is_shut(&self) -> bool {
        self.is_shut
    }

    /// Return true if both ends are closed.
    pub fn is_closed(&self) -> bool {
        self.sender.is_none() && self.receiver.is_none()
    }

    /// Request for the data, as the receiver.
    pub fn send_request(&self) -> io::Result<()> {
        let bytes = self.task.request_bytes.unwrap_or(0) as usize;
        if let Some(receiver) = self.receiver.as_ref().filter(|_| bytes > 0) {
            send(
                receiver,
                &ZEROS[..bytes.min(ZEROS.len())],
                SendFlags::NOSIGNAL,
            )?;
        }
        Ok(())
    }

    /// Take what there is of the request, as the sender.
    pub fn read_request(&mut self) -> io::Result<()> {
        while let Some(sender) = self.sender.as_ref().filter(|_| self.unread_request > 0) {
            match sys::discard(sender.as_fd(), self.unread_request as usize) {
                Ok(0) => break,
                Ok(bytes) => self.unread_request -= bytes as u32,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Write what TCP takes and the application has; close the sender's side when that is all.
    ///
    /// Of a path that is as fast as the application it takes no more than about `max_bytes` at a time; whether that was
    /// why it stopped. The data are those of a flow of `from`, if they are any.
    pub fn write(
        &mut self,
        now: Time,
        max_bytes: u64,
        mut from: Option<(&mut Source, u32)>,
    ) -> io::Result<bool> {
        let Some(sender) = self
            .sender
            .as_ref()
            .filter(|_| self.unread_request == 0 && !self.is_shut)
        else {
            return Ok(false);
        };
        let before = self.written;
        if before == 0 && self.task.writes.is_some_and(|writes| writes.nodelay) {
            sockopt::set_tcp_nodelay(sender, true)?;
        }
        loop {
            if self.written - before >= max_bytes {
                return Ok(true);
            }
            let limit = self
                .unwritten
                .min(self.available(now))
                .min(self.write_bytes());
            let chunk = limit.min(ZEROS.len() as u64) as usize;
            if chunk == 0 {
                break;
            }
            if chunk as u64 == self.unwritten && !self.is_receiver_initiated() {
                sys::set_option(
                    sender.as_fd(),
                    libc::SOL_SOCKET,
                    libc::SO_TIMESTAMPING,
                    TIMESTAMP_ACKED as i32,
                )?;
            }
            let sent = match &mut from {
                Some((source, flow)) => source.send(sender, *flow, self.written, limit),
                None => send(sender, &ZEROS[..chunk], SendFlags::NOSIGNAL).map_err(io::Error::from),
            };
            match sent {
                Ok(taken) => {
                    self.written += taken as u64;
                    if self.unwritten != u64::MAX {
                        self.unwritten -= taken as u64;
                    }
                    if taken < chunk && from.is_none() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if self.unwritten == 0 {
            self.is_shut = true;
            shutdown(sender, Shutdown::Write)?;
        }
        Ok(false)
    }

    /// Bytes that an application of a given rate has ready: a segment when the connection opens, then one after the
    /// other; or one of messages.
    fn available(&self, now: Time) -> u64 {
        let Some(period) = self.period() else {
            return u64::MAX;
        };
        let open = now.since(self.established);
        let bytes = if let Some(writes) = self.task.writes {
            writes.due(open).saturating_mul(writes.size_bytes)
        } else {
            let segments = open.picoseconds() / period.picoseconds() + 1;
            segments * u64::from(self.task.mss_bytes)
        };
        bytes.saturating_sub(self.written)
    }

    /// Most bytes of the next write: what is left of one of a message.
    fn write_bytes(&self) -> u64 {
        let size = self.task.writes.map(|writes| writes.size_bytes);
        size.map_or(u64::MAX, |size| size - self.written % size)
    }

    /// When an application of a given rate writes again; none if that is known already, or it writes as TCP takes it,
    /// or has written all.
    pub fn next_write(&mut self, now: Time, serve: Time) -> Option<Time> {
        let period = self
            .period()
            .filter(|_| !self.is_shut && self.writes_at <= now)?;
        let open = now.since(self.established).picoseconds();
        let next = (open / period.picoseconds() + 1) * period.picoseconds();
        self.writes_at = (self.established + Time::from_picoseconds(next)).max(now + serve);
        Some(self.writes_at)
    }

    fn period(&self) -> Option<Time> {
        if let Some(writes) = self.task.writes {
            return Some(writes.every);
        }
        let rate = self.task.rate?;
        let period = rate.transmission_time(u64::from(self.task.mss_bytes));
        (period > Time::ZERO).then_some(period)
    }

    /// The application has no more to send than what TCP has taken.
    pub fn stop(&mut self, now: Time) -> io::Result<()> {
        self.unwritten = 0;
        self.unread_request = 0;
        self.write(now, u64::MAX, None).map(drop)
    }

    /// Drain the sender's error queue; an error if the kernel has aborted the connection.
    pub fn drain_error_queue(&self) -> io::Result<()> {
        let Some(sender) = &self.sender else {
            return Ok(());
        };
        let flags = RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT;
        while recv(sender, &mut [0_u8; 1], flags).is_ok() {}
        Ok(sockopt::socket_error(sender)??)
    }

    /// Read what there is, or what is due of a slow reader, and discard or store it.
    pub fn read(
        &mut self,
        to_the_end: bool,
        now: Time,
        mut to: Option<&mut Sink>,
    ) -> io::Result<ReadOutcome> {
        if self.reads.is_some() {
            self.has_ended |= to_the_end;
            return self.read_due(now);
        }
        let before = self.received;
        while let Some(receiver) = &self.receiver {
            let taken = match &mut to {
                Some(sink) => sink.take(receiver),
                None => sys::discard(receiver.as_fd(), READ_BYTES),
            };
            match taken {
                Ok(0) => return Ok(ReadOutcome::End),
                Ok(bytes) => self.received += bytes as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            if !to_the_end && to.is_none() {
                break;
            }
            if !to_the_end && self.received - before >= TURN_BYTES {
                return Ok(ReadOutcome::More);
            }
        }
        Ok(ReadOutcome::Drained)
    }

    /// Read and discard what a slow reader reads by now.
    fn read_due(&mut self, now: Time) -> io::Result<ReadOutcome> {
        let (Some(receiver), Some(reads)) = (&self.receiver, &mut self.reads) else {
            return Ok(ReadOutcome::Drained);
        };
        let arrived = self.received + ioctl_fionread(receiver)?;
        let is_all = self.has_ended || self.task.size_bytes == Some(arrived);
        reads.read(arrived, is_all, now);
        while self.received < reads.read_bytes {
            let most = (reads.read_bytes - self.received).min(READ_BYTES as u64);
            match sys::discard(receiver.as_fd(), most as usize)? {
                0 => return Ok(ReadOutcome::End),
                bytes => self.received += bytes as u64,
            }
        }
        if self.has_ended && self.received == arrived {
            return Ok(ReadOutcome::End);
        }
        self.reads_at = reads.due(arrived, is_all);
        Ok(ReadOutcome::Drained)
    }

    /// When a slow reader reads again; none if it waits for data, or that is known already.
    pub fn next_read(&mut self) -> Option<Time> {
        let before = std::mem::replace(&mut self.read_scheduled, self.reads_at);
        (self.reads_at != before && !self.reads_at.is_never()).then_some(self.reads_at)
    }

    /// Sample the sender; return what has changed since the last sample.
    pub fn sample(&mut self) -> io::Result<Counts> {
        let Some(sender) = &self.sender else {
            return Ok(Counts::default());
        };
        let (bytes, length) = sys::tcp_info(sender.as_fd())?;
        let now = Info::parse(&bytes[..length]);
        let before = std::mem::replace(&mut self.info, now);
        let retransmitted = u64::from(
            now.total_retransmissions
                .saturating_sub(before.total_retransmissions),
        );
        let opening = !before.is_open() || before == Info::default();
        let news = Counts {
            syn_retransmissions: if opening { retransmitted } else { 0 },
            retransmissions: if opening { 0 } else { retransmitted },
            spurious: u64::from(
                now.reported_duplicates
                    .saturating_sub(before.reported_duplicates),
            ),
            timeouts: if opening { 0 } else { timeouts(&before, &now) },
            recoveries: u64::from(is_recovering(&now) && !is_recovering(&before)),
            ..Counts::default()
        };
        self.counts.sent_packets = u64::from(now.segments_out);
        self.counts.syn_retransmissions += news.syn_retransmissions;
        self.counts.retransmissions += news.retransmissions;
        self.counts.spurious += news.spurious;
        self.counts.timeouts += news.timeouts;
        self.counts.recoveries += news.recoveries;
        Ok(news)
    }

    /// Count what the receiver has, read or not.
    pub fn count_delivered(&mut self) -> io::Result<()> {
        if let Some(receiver) = &self.receiver {
            let (bytes, length) = sys::tcp_info(receiver.as_fd())?;
            let info = Info::parse(&bytes[..length]);
            // The kernel counts the FIN as a byte.
            let arrived = info
                .bytes_received
                .min(self.task.size_bytes.unwrap_or(u64::MAX));
            self.counts.delivered_bytes = arrived.max(self.received);
            // It does not count the SYN that it was made for.
            self.received_packets =
                u64::from(info.segments_in) + u64::from(!self.is_receiver_initiated());
        }
        Ok(())
    }

    /// The receiver has read all and closes.
    pub fn close_receiver(&mut self) -> io::Result<()> {
        self.count_delivered()?;
        self.counts.delivered_bytes = self.received;
        self.receiver = None;
        Ok(())
    }

    /// Bytes that the sender has sent, headers included.
    pub fn sent_bytes(&self) -> u64 {
        let syns = u64::from(self.counts.sent_packets > 0) + self.counts.syn_retransmissions;
        let headers = self.counts.sent_packets * u64::from(self.task.header_bytes);
        self.info.bytes_sent + headers + syns * SYN_OPTIONS_BYTES
    }

    /// Return true if all that the application has written is acknowledged, and it writes no more.
    pub fn is_acknowledged(&self) -> bool {
        let all = self.written > 0 && self.acknowledged_bytes() == self.written;
        self.is_shut && (all || self.info.is_closed())
    }

    /// Bytes acknowledged, without the SYN and the FIN that the kernel counts with them.
    pub fn acknowledged_bytes(&self) -> u64 {
        let syn = u64::from(!self.is_receiver_initiated());
        self.info.bytes_acked.saturating_sub(syn).min(self.written)
    }
}

fn is_recovering(info: &Info) -> bool {
    info.congestion_state == RECOVERY
}

/// Timeouts between two looks: as many as the kernel counts, or as can be seen.
fn timeouts(before: &Info, now: &Info) -> u64 {
    match (before.timeouts, now.timeouts) {
        (Some(before), Some(now)) => u64::from(now.wrapping_sub(before)),
        _ if now.retransmits > before.retransmits => {
            u64::from(now.retransmits - before.retransmits)
        }
        _ => u64::from(now.congestion_state == LOSS && before.congestion_state != LOSS),
    }
}
