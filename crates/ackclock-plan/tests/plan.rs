//! Plans as they are read: complete, without unknown fields, and possible.

mod strict;

use ackclock_core::Time;
use ackclock_plan::{Error, Plan};
use serde::Deserialize;
use serde_json::{json, Value};

fn complete() -> Value {
    serde_json::from_str(include_str!("complete.json")).expect("JSON")
}

fn read(plan: &Value) -> Result<Plan, serde_json::Error> {
    Plan::deserialize(plan)
}

#[test]
fn each_field_is_required_and_unknown_ones_are_rejected() {
    let faults = strict::faults(&complete(), |plan| read(plan).is_ok());
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_connection_of_a_users_stack_has_all_of_its_fields() {
    let mut plan = complete();
    plan["datagrams"][0]["source"] = json!({
        "kind": "stack", "stack": "mine", "congestion": "", "options": "", "start_jitter_s": 0.0, "size_bytes": null,
        "initial_window_bytes": 12000, "max_payload_bytes": 1472, "receive_window_bytes": 1_250_000, "ecn": true,
    });
    let faults = strict::faults(&plan, |plan| read(plan).is_ok());
    assert!(faults.is_empty(), "{faults:#?}");
    read(&plan).expect("a plan").check().expect("a sound plan");
    for (key, value, message) in [
        (
            "max_payload_bytes",
            json!(1199),
            "max_payload_bytes is 1199",
        ),
        ("options", json!("a\u{0}b"), "options has a zero byte"),
    ] {
        let mut wrong = plan.clone();
        wrong["datagrams"][0]["source"][key] = value;
        let error = read(&wrong).expect("a plan").check().expect_err("a fault");
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn a_complete_plan_is_accepted() {
    let plan = read(&complete()).expect("a plan");
    plan.check().expect("a sound plan");
    assert_eq!(plan.flows[1].tcp.segment_header_bytes(), 52);
    assert_eq!(plan.flows[1].congestion.kind, "cubic");
}

#[test]
fn the_base_rtt_is_the_delays_of_both_paths_and_their_links() {
    let plan = read(&complete()).expect("a plan");
    let [pair] = plan.traffic[0].paths() else {
        panic!("one pair of paths");
    };
    assert_eq!(pair.base_rtt(&plan.links), Time::from_milliseconds(30));
}

/// Error of a plan with another value at a JSON pointer.
fn rejection(place: &str, value: Value) -> String {
    let mut plan = complete();
    *plan.pointer_mut(place).expect("a place") = value;
    let plan = read(&plan).map_err(|error| error.to_string());
    plan.and_then(|plan| plan.check().map_err(|error: Error| error.to_string()))
        .expect_err("refused")
}

#[test]
fn impossible_values_are_rejected_with_a_message() {
    let cases = [
        ("/flows/0/group", json!(1), "group 1 describes no TCP"),
        ("/flows/0/group", json!(7), "group 7 describes no TCP"),
        ("/traffic/0/group", json!(1), "group 1 describes no TCP"),
        (
            "/flows/1/forward/hops/0/link",
            json!(9),
            "flow 1 passes link 9, but there are 4 links",
        ),
        (
            "/flows/1/forward/hops",
            json!([]),
            "flow 1 passes no link: its path needs at least one",
        ),
        (
            "/flows/1/priority",
            json!(16),
            "priority is 16, but at most 15 is possible",
        ),
        (
            "/groups/1/dscp",
            json!(64),
            "dscp is 64, but at most 63 is possible",
        ),
        (
            "/changes/0/link",
            json!(4),
            "a change at 2 s names link 4, but there are 4 links",
        ),
        (
            "/changes/0/rate_bps",
            json!(0.0),
            "rate_bps must be greater than zero",
        ),
        (
            "/links/0/ends/source",
            json!(3),
            "link 0 names node 3, but there are 3 nodes",
        ),
        (
            "/links/0/ends/source",
            json!(1),
            "link 0 begins and ends at \"s0\"",
        ),
        (
            "/flows/0/ends/source",
            json!(1),
            "flow 0 begins or ends at \"s0\", which is not a host",
        ),
        (
            "/flows/0/forward/delay_s",
            json!(0.1),
            "flow 0 has ends and paths: it may have only one of them",
        ),
        (
            "/datagrams/0/source/per_s",
            json!(0.0),
            "datagrams 0: per_s",
        ),
        (
            "/datagrams/0/payload_bytes",
            json!(65_508),
            "payload_bytes with headers is 65536, but at most 65535",
        ),
        (
            "/groups/0/tcp/mss_bytes",
            json!(0),
            "mss_bytes must be greater than zero",
        ),
        (
            "/record/interval_s",
            json!(0.0),
            "record.interval_s must be greater than zero",
        ),
    ];
    for (place, value, expected) in cases {
        let found = rejection(place, value);
        assert!(found.starts_with(expected), "{place}: {found}");
    }
}
