//! Memory limits: open connections are ended early, which is reported, and none of their data is lost.

use crate::kit::{Trace, MSS};
use ackclock_analysis::analysis::Analysis;
use ackclock_analysis::output::Options;
use ackclock_pcap::packet::Segment;

const CONNECTIONS: u16 = 400;

/// All connections open at once, one after the other, and send a second segment when all have.
fn analysed(max_bytes: usize) -> (u32, u32, u64) {
    let mut analysis = Analysis::new(Options {
        max_bytes,
        ..Options::default()
    });
    for (second, number) in [(0, 0), (60, 1)] {
        for connection in 0..CONNECTIONS {
            let mut trace = Trace::after_handshake(0, 100);
            let at_ms = 1000 * second + i64::from(connection);
            let mut data: Segment = *trace.data(at_ms, number);
            data.source.port = 1024 + connection;
            analysis.take(&data);
        }
    }
    analysis.finish();
    let flows = &analysis.output.tables.flows;
    let bytes = flows.delivered_bytes.iter().sum();
    (
        analysis.connections(),
        analysis.evicted_connections(),
        bytes,
    )
}

#[test]
fn with_room_all_are_kept() {
    assert_eq!(
        analysed(1 << 24),
        (
            u32::from(CONNECTIONS),
            0,
            2 * u64::from(MSS) * u64::from(CONNECTIONS)
        )
    );
}

#[test]
fn without_it_idle_ones_are_ended_early_and_go_on_as_others() {
    let (connections, evicted_connections, bytes) = analysed(100_000);
    let others = connections - u32::from(CONNECTIONS);
    assert!(others > 100, "{others}");
    assert!(
        others <= evicted_connections,
        "{others} of {evicted_connections}"
    );
    assert_eq!(bytes, 2 * u64::from(MSS) * u64::from(CONNECTIONS));
}
