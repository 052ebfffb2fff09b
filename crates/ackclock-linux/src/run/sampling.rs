//! Samples, the end of the warm-up, and the totals at the end.
//!
//! What TCP does between two samples is seen at the second: retransmissions and SYN retransmissions by the kernel's
//! counts, timeouts by its count or the backoff, recoveries by the congestion state. A recovery that begins and ends
//! between two samples is not seen.

use std::time::Duration;

use ackclock_core::tables::{EventKind, Events, FlowSamples, NONE};
use ackclock_core::Time;

use super::serving::active;
use super::{Run, Stage};
use crate::connection::{Connection, Counts};
use crate::error::Tried;
use crate::rows::Row;
use crate::stream::Stream;
use crate::Error;

impl Run {
    /// Sample the active connections in their order, and the queues.
    pub(super) fn sample(&mut self, at: Time) -> Result<(), Error> {
        let first_transfer = self.plans.first_transfer();
        for &flow in &self.active {
            let stream = match &self.flows[flow as usize] {
                Stage::Stream(stream) => Some(stream).filter(|stream| stream.sink.is_some()),
                _ => None,
            };
            if let Some(stream) = stream {
                write_stream(stream, at, flow, &mut self.record.flow_samples);
            }
            let Some(connection) = active(&mut self.flows, flow) else {
                continue;
            };
            // A sender that the kernel gave up is closed by its socket's event.
            let news = connection.sample().unwrap_or_default();
            record_events(&news, at, flow, &mut self.record.events);
            let is_recorded = self.spec.plan.record.traffic || (flow as usize) < first_transfer;
            if is_recorded && connection.sender.is_some() && connection.info.is_open() {
                write(connection, at, flow, &mut self.record.flow_samples);
            }
        }
        self.sample_queues(at)
    }

    fn sample_queues(&mut self, at: Time) -> Result<(), Error> {
        let drops = self
            .queues
            .sample(at, &self.spec, &mut self.record.queue_samples)?;
        if self.monitor.is_some() {
            return Ok(());
        }
        // Without a monitor, a queue's own counter gives the number of dropped packets, not their flows.
        for (link, count) in drops {
            for _ in 0..count {
                let events = &mut self.record.events;
                events.push(at.seconds(), NONE, link, EventKind::Drop, f64::NAN);
            }
        }
        Ok(())
    }

    /// The measured part begins.
    pub(super) fn end_warmup(&mut self) -> Result<(), Error> {
        self.warmed_up = true;
        self.queues.end_warmup()?;
        for &flow in &self.active {
            if let Stage::Stream(stream) = &mut self.flows[flow as usize] {
                stream.at_warmup = stream.counts();
            }
            let Some(connection) = active(&mut self.flows, flow) else {
                continue;
            };
            let news = connection.sample().unwrap_or_default();
            record_events(&news, self.now, flow, &mut self.record.events);
            connection
                .count_delivered()
                .tried(|| "TCP_INFO".to_owned())?;
            connection.at_warmup = connection.counts;
        }
        Ok(())
    }

    /// Write the tables that are complete only at the end.
    pub(super) fn total(&mut self, at: Time) -> Result<(), Error> {
        self.on_drops();
        self.record.links = self.queues.totals(&self.spec)?;
        for &flow in &self.active {
            let Some(connection) = active(&mut self.flows, flow) else {
                continue;
            };
            let news = connection.sample().unwrap_or_default();
            record_events(&news, at, flow, &mut self.record.events);
            connection
                .count_delivered()
                .tried(|| "TCP_INFO".to_owned())?;
        }
        for index in 0..self.flows.len() {
            self.write_row(index)?;
        }
        let memory_pressures = self.hosts.namespaces.memory_pressures()?;
        let kernel = &mut self.record.kernel;
        kernel.release.push(release());
        kernel.late_mean_s.push(self.lateness.mean_s());
        kernel.late_max_s.push(self.lateness.max_s);
        kernel.skipped_samples.push(self.left_out);
        let captures = self.captures.iter_mut();
        let lost_p = captures.map(|capture| capture.finish(&self.clock));
        let lost_p = lost_p.sum::<Result<u64, _>>()?;
        kernel.capture_lost_p.push(lost_p);
        kernel.memory_pressures.push(memory_pressures);
        let spent = |spent: Option<Duration>| spent.unwrap_or_default().as_secs_f64();
        let (source, sink) = (self.store.source.as_ref(), self.store.sink.as_ref());
        kernel
            .file_read_s
            .push(spent(source.map(|from| from.spent)));
        kernel.file_write_s.push(spent(sink.map(|to| to.spent)));
        Ok(())
    }

    /// A row for each flow of the plan, and for each generated transfer that has begun.
    fn write_row(&mut self, index: usize) -> Result<(), Error> {
        if self.spec.local.is_some() && !self.write_ends(index)? {
            return Ok(());
        }
        let row = match &self.flows[index] {
            Stage::Waiting if index >= self.plans.first_transfer() => return Ok(()),
            Stage::Waiting if self.plans.datagrams().contains(&index) => Row::of_stream(None),
            Stage::Waiting => Row::waiting(),
            Stage::Active(connection) => Row::of(connection),
            Stage::Stream(stream) => Row::of_stream(Some(stream)),
            Stage::Over(row) => **row,
        };
        let about = self.plans.about(&self.spec, index)?;
        let dropped = self.dropped.get(index).copied();
        row.write(index as u32, &about, dropped, &mut self.record.flows);
        row.write_limits(index as u32, &mut self.record.limits);
        Ok(())
    }
}

/// The kernel's own name of its version.
fn release() -> String {
    let uname = rustix::system::uname();
    uname.release().to_string_lossy().into_owned()
}

/// Events of what has happened to a connection since the last look.
fn record_events(news: &Counts, at: Time, flow: u32, events: &mut Events) {
    let happened = [
        (EventKind::SynRetransmission, news.syn_retransmissions),
        (EventKind::Timeout, news.timeouts),
        (EventKind::Recovery, news.recoveries),
        (EventKind::Retransmission, news.retransmissions),
        (EventKind::SpuriousRetransmission, news.spurious),
    ];
    for (happening, count) in happened {
        for _ in 0..count {
            events.push(at.seconds(), flow, NONE, happening, f64::NAN);
        }
    }
}

fn write(connection: &Connection, at: Time, flow: u32, samples: &mut FlowSamples) {
    let info = &connection.info;
    samples.time_s.push(at.seconds());
    samples.flow.push(flow);
    samples.cwnd.push(f64::from(info.cwnd));
    samples.ssthresh.push(info.ssthresh_p());
    samples.srtt_s.push(info.srtt_s());
    samples.in_flight.push(info.in_flight());
    samples
        .delivered_bytes
        .push(connection.acknowledged_bytes());
}

/// A UDP flow has no window; what has arrived counts.
fn write_stream(stream: &Stream, at: Time, flow: u32, samples: &mut FlowSamples) {
    samples.time_s.push(at.seconds());
    samples.flow.push(flow);
    samples.cwnd.push(f64::NAN);
    samples.ssthresh.push(f64::NAN);
    samples.srtt_s.push(stream.rtt_s());
    samples.in_flight.push(NONE);
    samples
        .delivered_bytes
        .push(stream.counts().delivered_bytes);
}
