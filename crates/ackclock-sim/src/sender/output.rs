//! Transmission: which segments may be sent now.

use ackclock_core::tables::EventKind;
use ackclock_core::Time;

use super::buffer::{Outstanding, SendBuffer};
use super::pacing::SendDecision;
use super::send_reason::{BlockedBy, Trigger};
use super::{floor_segments, CaState, Outlet, Sender};
use crate::options;
use crate::packet::{Ecn, Flags, Kind, Packet, NO_PACKET};
use ackclock_congestion::Restart;

impl Sender {
    /// Send what the window, the receiver, the application and pacing allow: first lost segments,
    /// then new segments.
    #[inline(always)]
    pub(super) fn transmit(&mut self, now: Time, out: &mut impl Outlet) {
        if self.is_open() {
            self.transmit_open::<false>(now, out);
        }
    }

    /// Do the same on a connection that is open; `IN_ORDER`: nothing is SACKed, lost or retransmitted.
    #[inline(always)]
    pub(super) fn transmit_open<const IN_ORDER: bool>(&mut self, now: Time, out: &mut impl Outlet) {
        let was_idle = self.board.outstanding() == 0;
        if was_idle {
            self.restart(now);
        }
        self.write(now, out);
        let before = self.counters.sent_packets;
        self.stop = self.fill_window::<IN_ORDER>(now, out);
        if self.has_written_all() {
            self.close(now, out);
        }
        let limited = self.stop == BlockedBy::Window;
        if self.counters.sent_packets > before || limited {
            let limited = limited || self.flight::<IN_ORDER>() >= self.window;
            self.cwnd_usage.observe(limited, &self.board);
        }
        if self.board.outstanding() > 0 {
            if was_idle {
                self.start_timer(now);
            }
        } else if self.stop == BlockedBy::Receiver {
            self.await_window(now);
        }
    }

    /// True if the connection is established and not closed.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        !matches!(
            self.ca_state,
            CaState::Closed
                | CaState::SynSent
                | CaState::Listen
                | CaState::SynReceived
                | CaState::Done
        )
    }

    /// Send until blocked; returns by what.
    #[inline(always)]
    pub(super) fn fill_window<const IN_ORDER: bool>(
        &mut self,
        now: Time,
        out: &mut impl Outlet,
    ) -> BlockedBy {
        self.pacing.cut();
        loop {
            let occupied = if IN_ORDER {
                self.board.outstanding()
            } else {
                self.occupied()
            };
            if occupied >= self.window {
                if self.buffer.as_ref().is_some_and(SendBuffer::has_fin_left) {
                    self.send_fin(now, out);
                }
                return BlockedBy::Window;
            }
            let lost = if IN_ORDER || self.frto.prefers_new_data {
                None
            } else {
                self.board.next_lost()
            };
            let new = if lost.is_none() {
                self.new_segments(now)
            } else {
                0
            };
            if lost.is_none() && new == 0 {
                return self.blocked_without_data(now);
            }
            match self.decide_send(lost.is_none(), now) {
                SendDecision::Now => {}
                SendDecision::Later => {
                    self.timers.pacing = self.pacing.next;
                    return BlockedBy::Pacing;
                }
                SendDecision::Defer => return BlockedBy::Window,
            }
            if let Some(sequence) = lost {
                self.retransmit(sequence, Trigger::Window, now, out);
            } else {
                let room = u64::from(self.window - occupied);
                self.send_new(new.min(room), Trigger::Window, now, out);
            }
        }
    }

    /// Limit that holds new data back while the congestion window has room: the receiver's window, the send buffer, or
    /// the application, which then limits the rate as well.
    #[inline]
    fn blocked_without_data(&mut self, now: Time) -> BlockedBy {
        let written = match &self.buffer {
            Some(buffer) => buffer.written,
            None => self.workload.available_without_buffer(now),
        };
        let has_data = self.board.next < written;
        if has_data && self.board.next >= self.window_end {
            return BlockedBy::Receiver;
        }
        let waits = self.buffer.as_ref().is_some_and(|buffer| buffer.is_waiting);
        if !waits {
            self.rates.limit_by_application(self.board.in_flight());
        }
        if (has_data && !self.workload.has_messages())
            || (waits && self.tcp.send_buffer_bytes.is_some())
        {
            BlockedBy::SendBuffer
        } else {
            BlockedBy::Application
        }
    }

    /// Begin a new flight after an idle time, of which the controller is notified.
    fn restart(&mut self, now: Time) {
        self.rates.begin_flight(now);
        let idle_since = self.pacing.last_sent;
        let data = self.available(now).max(self.workload.data(now));
        if idle_since == Time::ZERO || self.board.next >= data.min(self.window_end) {
            return;
        }
        self.controller.on_restart(&Restart {
            now: self.controller_time(now),
            idle_since: self.controller_time(idle_since),
            rto: self.rtt.rto(),
            initial_window: self.tcp.initial_window,
        });
        self.window = floor_segments(self.controller.cwnd());
    }

    /// Segments that count against the window. RFC 3042 lets SACKed segments make room for new ones;
    /// without limited transmit they do so only in recovery.
    #[inline]
    pub(super) fn occupied(&self) -> u32 {
        if self.ca_state == CaState::Disorder && !self.tcp.limited_transmit {
            self.board.outstanding()
        } else {
            self.board.in_flight()
        }
    }

    /// Segments that TCP has taken from the application: without a send buffer, those sent.
    pub(super) fn taken(&self) -> u64 {
        let written = self.buffer.as_ref().map(|buffer| buffer.written);
        written.unwrap_or(self.board.next)
    }

    /// Segments that TCP has been given.
    #[inline]
    fn available(&self, now: Time) -> u64 {
        match &self.buffer {
            Some(buffer) => buffer.written,
            None => self.workload.available(self.board.unacknowledged, now),
        }
    }

    /// Outstanding segments, as the send buffer counts them.
    fn held(&self) -> Outstanding {
        Outstanding {
            segments: self.board.outstanding(),
            buffers: self.board.buffers(),
            next: self.board.next,
        }
    }

    /// Let the application write what it has, unless it waits for room.
    #[inline]
    fn write(&mut self, now: Time, out: &mut impl Outlet) {
        let Some(buffer) = &self.buffer else {
            if self.workload.has_messages() {
                self.write_messages(now, out);
            }
            return;
        };
        if buffer.is_waiting {
            return;
        }
        let data = self.workload.data(now);
        if buffer.written < data {
            self.write_to(data, now, out);
        }
    }

    /// Write, and send full buffers meanwhile.
    #[cold]
    fn write_to(&mut self, data: u64, now: Time, out: &mut impl Outlet) {
        loop {
            let held = self.held();
            let Some(buffer) = &mut self.buffer else {
                return;
            };
            if !buffer.fill(data, held) {
                return;
            }
            if buffer.pushes() {
                self.push(now, out);
            }
        }
    }

    /// True if the application has written all and is to close, with a send buffer.
    #[inline]
    fn has_written_all(&self) -> bool {
        let all = self.workload.segments;
        self.buffer.as_ref().is_some_and(|buffer| buffer.ends(all))
    }

    /// Close the application's side: the FIN goes with the last segment, or after it if that is sent.
    #[cold]
    #[inline(never)]
    fn close(&mut self, now: Time, out: &mut impl Outlet) {
        if self.buffer.as_mut().is_some_and(SendBuffer::close) {
            self.workload.close_in_data();
        }
        self.stop = self.fill_window::<false>(now, out);
    }

    /// Send a single segment with the FIN regardless of the window.
    #[cold]
    #[inline(never)]
    fn send_fin(&mut self, now: Time, out: &mut impl Outlet) {
        if !self.has_new(now) {
            return;
        }
        match self.decide_send(true, now) {
            SendDecision::Now => self.send_new(1, Trigger::Window, now, out),
            SendDecision::Later => self.timers.pacing = self.pacing.next,
            SendDecision::Defer => {}
        }
    }

    /// Send one batch of new segments without waiting for more, as far as the window and pacing allow.
    fn push(&mut self, now: Time, out: &mut impl Outlet) {
        let before = self.counters.sent_packets;
        self.pacing.push();
        while self.occupied() < self.window && self.has_new(now) && self.pushes_on(now) {
            self.send_new(1, Trigger::Window, now, out);
        }
        if self.counters.sent_packets > before {
            let limited = self.board.in_flight() >= self.window;
            self.cwnd_usage.observe(limited, &self.board);
        }
        self.pacing.pushes = false;
    }

    /// Let an application that an ACK has woken write.
    #[inline]
    pub(super) fn refill(&mut self, now: Time, out: &mut impl Outlet) {
        if self.buffer.is_none() {
            return;
        }
        self.wake_application_if_room();
        if self.buffer.as_ref().is_some_and(|buffer| buffer.woken) {
            self.write_on(now, out);
        }
    }

    /// Wake the application, let it write, and send what the window allows.
    #[inline(never)]
    fn write_on(&mut self, now: Time, out: &mut impl Outlet) {
        let was_idle = self.board.outstanding() == 0;
        if was_idle {
            self.restart(now);
        }
        let data = self.workload.data(now);
        self.write_to(data, now, out);
        self.transmit(now, out);
        if was_idle && self.board.outstanding() > 0 {
            self.start_timer(now);
        }
    }

    /// Grant memory to a waiting application if the window is not used, and wake it if there is room now.
    /// If nothing was left to send, the application limited the sender, unless something is to be retransmitted.
    #[inline]
    pub(super) fn wake_application_if_room(&mut self) {
        let Some(buffer) = self.buffer.as_mut().filter(|buffer| buffer.is_waiting) else {
            return;
        };
        let in_flight = self.board.in_flight();
        if in_flight < self.window {
            buffer.grant(self.window);
        }
        if buffer.is_full(self.board.unacknowledged) {
            return;
        }
        let held = self.held();
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        if buffer.wakes(held)
            && buffer.first() == 0
            && in_flight < self.window
            && self.board.next_lost().is_none()
        {
            self.rates.limit_by_application(in_flight);
        }
    }

    /// True if a new segment may be sent.
    #[inline]
    pub(super) fn has_new(&mut self, now: Time) -> bool {
        self.new_segments(now) > 0
    }

    /// New segments that may be sent: written by the application, within the receive window.
    #[inline(always)]
    fn new_segments(&mut self, now: Time) -> u64 {
        let next = self.board.next;
        if next >= self.window_end {
            return 0;
        }
        let available = self.available(now);
        if next >= available {
            self.await_application(next, now);
            return 0;
        }
        available.min(self.window_end) - next
    }

    /// Take the receiver's window from one of its packets. Its right edge never moves back, so a smaller one is that of
    /// a packet that was overtaken (RFC 9293 sections 3.8.6 and 3.10.7.4). Returns whether the edge has moved.
    #[inline(always)]
    pub(super) fn take_window(&mut self, packet: &Packet) -> bool {
        let end = packet.number() + packet.window();
        let moves = end > self.window_end;
        self.window_end = self.window_end.max(end);
        if let Some(buffer) = &mut self.buffer {
            buffer.observe_window(packet.window());
        }
        moves
    }

    /// Set the timer for the application's next write, unless it waits for room.
    #[cold]
    fn await_application(&mut self, next: u64, now: Time) {
        if self.workload.has_messages() {
            self.timers.application = self.workload.next_write().max(now);
            return;
        }
        let has_room = match &self.buffer {
            Some(buffer) => !buffer.is_waiting,
            None => next < self.workload.room_end(self.board.unacknowledged),
        };
        if has_room && next < self.workload.segments {
            let written = self.workload.written_at(next).max(now);
            self.timers.application = written.min(self.workload.stop);
        }
    }

    /// Send new segments, the first of which may go: up to `limit` of those in the same batch that differ only in their
    /// numbers.
    #[inline(always)]
    pub(super) fn send_new(
        &mut self,
        limit: u64,
        trigger: Trigger,
        now: Time,
        out: &mut impl Outlet,
    ) {
        if self.buffer.is_none() {
            self.workload.send(self.board.unacknowledged);
        }
        let first = self.board.next;
        let (kind, payload, run) = self.workload.run(first);
        let count = self.take_batch(run.min(limit) as u32);
        let end = first + u64::from(count);
        let bytes = payload + self.tcp.segment_header_bytes();
        let sending = self.rates.sending(now);
        let mut flags = self.flags_of(false);
        self.timed.start(first, now);
        self.board.reserve(count);
        for sequence in first..end {
            self.board.send_next(&sending);
            self.emit((kind, sequence), flags, bytes, trigger, now, out);
            flags = flags.with_echo(0);
        }
        self.take_from_buffer(first, end);
        self.depart(first..end, payload, now);
        self.count_sent(count, bytes);
    }

    /// Take new segments from the send buffer.
    #[inline]
    fn take_from_buffer(&mut self, first: u64, end: u64) {
        let Some(buffer) = &mut self.buffer else {
            return;
        };
        (first..end).for_each(|_| buffer.take());
        if std::mem::take(&mut self.pacing.begins) {
            self.board.begin_buffer(first);
        }
    }

    pub(super) fn retransmit(
        &mut self,
        sequence: u64,
        trigger: Trigger,
        now: Time,
        out: &mut impl Outlet,
    ) {
        let sending = self.rates.sending(now);
        self.board.retransmit(sequence, &sending);
        self.timed.cancel();
        self.counters.retransmissions += 1;
        if trigger != Trigger::TlpProbe {
            self.undo.on_retransmission(now);
        }
        out.report(self.flow, EventKind::Retransmission, sequence as f64);
        if sequence == self.board.unacknowledged && !self.is_impatient() {
            self.timers.start(now, self.rtt.rto());
        }
        let (kind, payload, _) = self.workload.run(sequence);
        let bytes = payload + self.tcp.segment_header_bytes();
        let flags = self.flags_of(true);
        self.emit((kind, sequence), flags, bytes, trigger, now, out);
        self.depart(sequence..sequence + 1, payload, now);
        self.count_sent(1, bytes);
    }

    /// Send one lost segment regardless of the window (the first of a recovery).
    pub(super) fn send_lost(&mut self, trigger: Trigger, now: Time, out: &mut impl Outlet) {
        if let Some(sequence) = self.board.next_lost() {
            self.retransmit(sequence, trigger, now, out);
        }
    }

    /// Count packets of the same size that were sent.
    #[inline(always)]
    fn count_sent(&mut self, packets: u32, bytes: u32) {
        self.counters.sent_packets += u64::from(packets);
        self.counters.sent_bytes += u64::from(packets) * u64::from(bytes);
    }

    pub(super) fn send_control(&mut self, kind: Kind, now: Time, out: &mut impl Outlet) {
        let bytes = match kind {
            Kind::Syn | Kind::ServerSynAck => options::syn_header_bytes(&self.tcp),
            _ => self.tcp.segment_header_bytes(),
        };
        let retransmitted = kind.opens() && self.handshake.retransmissions > 0;
        let ecn = Ecn::of_control(self.tcp.ecn);
        let flags = Flags::of(ecn).with_retransmitted(retransmitted);
        let number = if kind == Kind::WindowProbe {
            self.board.unacknowledged
        } else {
            0
        };
        self.emit((kind, number), flags, bytes, Trigger::Window, now, out);
        self.count_sent(1, bytes);
    }

    #[inline(always)]
    fn emit(
        &self,
        (kind, sequence): (Kind, u64),
        flags: Flags,
        bytes: u32,
        trigger: Trigger,
        now: Time,
        out: &mut impl Outlet,
    ) {
        let packet = Packet {
            sequence,
            timestamp: now,
            enqueued: now,
            flow: self.flow,
            wire_bytes: bytes,
            kind,
            flags,
            ..NO_PACKET
        };
        let retransmitted = flags.is_retransmitted();
        out.send(packet, || self.reason(kind, trigger, retransmitted));
    }
}
