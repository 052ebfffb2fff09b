//! Shared parts of the example programs: a TCP plan.

use serde_json::{json, Value};

/// Payload of a full segment: a packet of 1500 bytes with timestamps.
pub const MSS_BYTES: u32 = 1448;

/// SACK, timestamps and RACK, without pacing.
pub fn tcp(delayed_ack: &str) -> Value {
    json!({
        "mss_bytes": MSS_BYTES,
        "header_bytes": 40,
        "sack": true,
        "timestamps": true,
        "delayed_ack": delayed_ack,
        "delayed_ack_timeout_s": 0.04,
        "initial_window": 10,
        "initial_rto_s": 1.0,
        "min_rto_s": 0.2,
        "max_rto_s": 120.0,
        "rto_floor_on_variance": true,
        "rto_slop_s": 0.0,
        "timer_tick_s": 0.0,
        "rtt_sampling": "each_ack",
        "rtt_tick_s": 0.0,
        "impatient": false,
        "receive_window_bytes": null,
        "send_buffer_bytes": null,
        "loss_detection": "rack",
        "tail_loss_probe": true,
        "undo_spurious": true,
        "frto": true,
        "adaptive_reordering": true,
        "limited_transmit": true,
        "recovery_reduction": "prr",
        "pacing": false,
        "tso_batching": false,
        "window_validation": true,
        "byte_counting": true,
        "ecn": "off", "processing": null,
    })
}
