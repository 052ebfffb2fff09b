//! Tahoe on the engine: each loss is repaired from one segment.

use ackclock_core::tables::EventKind;
use ackclock_plan::TcpPlan;
use serde_json::json;

use super::runs::{control, Bottleneck};
use crate::kit::{new_reno, reno, sack_tcp};

const SHORT_BUFFER: Bottleneck = Bottleneck {
    packets_per_s: 1000.0,
    rtt_ms: 100,
    limit_packets: 50,
};

#[test]
fn tahoe_begins_at_one_segment_after_each_loss_and_reno_does_not() {
    for tcp in [sack_tcp(), new_reno()] {
        let least = |kind: &str, tcp: &TcpPlan| {
            let control = control(kind, json!({ "slow_start": "standard" }));
            let run = SHORT_BUFFER.run_with(tcp, &[control], 20, 120);
            assert!(run.count(EventKind::Recovery) >= 4, "{kind}");
            assert_eq!(run.count(EventKind::Timeout), 0, "{kind}");
            run.windows().into_iter().fold(f64::INFINITY, f64::min)
        };
        assert!(least("tahoe", &tcp) < 8.0);
        assert!(least(&reno().kind, &tcp) > 60.0);
    }
}
