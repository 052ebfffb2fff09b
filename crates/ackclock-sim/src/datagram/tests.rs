use super::*;
use crate::packet::Kind;
use ackclock_plan::{PathPlan, SourcePlan};
use serde_json::json;

const SECOND: Time = Time::from_milliseconds(1000);

fn plan(source: serde_json::Value, stop: Option<Time>) -> DatagramPlan {
    let path = PathPlan {
        hops: vec![],
        delay: Time::ZERO,
    };
    DatagramPlan {
        group: 0,
        start: SECOND,
        stop,
        priority: 0,
        ends: None,
        forward: path.clone(),
        reverse: path,
        payload_bytes: 1,
        header_bytes: 28,
        source: serde_json::from_value(source).expect("a source"),
    }
}

fn schedule(plan: &DatagramPlan) -> &DatagramSource {
    let SourcePlan::Scheduled(source) = &plan.source else {
        panic!("expected a schedule");
    };
    source
}

/// Times of the datagrams of a source that starts at 1 s.
fn departures(source: serde_json::Value, stop: Option<Time>, most: usize) -> Vec<Time> {
    let plan = plan(source, stop);
    let mut source = Source::new(&plan, schedule(&plan), SECOND, 1, 0);
    let mut times = Vec::new();
    while !source.wake().is_never() && times.len() < most {
        let now = source.wake();
        let packet = source.poll(now).expect("one is due");
        assert_eq!((packet.timestamp, packet.wire_bytes), (now, 29));
        assert_eq!(packet.sequence, times.len() as u64);
        times.push(now);
    }
    times
}

#[test]
fn a_constant_rate_does_not_drift_and_stops() {
    let times = departures(
        json!({ "kind": "constant", "per_s": 300.0 }),
        Some(SECOND + SECOND),
        9999,
    );
    assert_eq!(times.len(), 300);
    assert_eq!(times[150], Time::from_milliseconds(1500));
    assert_eq!(times[1], SECOND + Time::from_picoseconds(3_333_333_333));
}

/// Braud, section 6.3: 100 datagrams at 250/s each second.
#[test]
fn bursts_begin_each_second_and_last_as_long_as_their_packets_take() {
    let bursts = json!({ "kind": "bursts", "per_s": 250.0, "packets": 100, "every_s": 1.0 });
    let times = departures(bursts, None, 250);
    assert_eq!(times[99], Time::from_milliseconds(1396));
    assert_eq!(times[100], Time::from_milliseconds(2000));
    assert_eq!(times[249], Time::from_milliseconds(3196));
}

#[test]
fn on_and_off_by_fixed_times() {
    let fixed = |s: f64| json!({ "kind": "fixed", "s": s });
    let times = departures(
        json!({ "kind": "on_off", "per_s": 100.0, "on": fixed(0.035), "off": fixed(0.5) }),
        None,
        9,
    );
    let at = [0, 10, 20, 30, 535, 545, 555, 565, 1070].map(|ms| Time::from_milliseconds(1000 + ms));
    assert_eq!(times, at);
}

#[test]
fn on_and_off_at_random_is_on_for_its_share() {
    let mean = |mean_s: f64| json!({ "kind": "exponential", "mean_s": mean_s });
    let source = json!({ "kind": "on_off", "per_s": 1000.0, "on": mean(0.3), "off": mean(0.7) });
    let times = departures(source, Some(Time::from_seconds(4001.0)), usize::MAX);
    // 0.3 of 4000 s at 1000/s, and half a datagram more in each of 4000 periods: 1,202,000. The time that it is on
    // has a standard deviation of sqrt(4000 · 2 · 0.3² · 0.7² / (0.3 + 0.7)) = 18.8 s, or 18,800 datagrams.
    let expected = 1_202_000.0;
    assert!(
        (times.len() as f64 - expected).abs() < 4.0 * 18_800.0,
        "{}",
        times.len()
    );
}

#[test]
fn impossible_sources_are_rejected() {
    let fixed = |s: f64| json!({ "kind": "fixed", "s": s });
    for source in [
        json!({ "kind": "constant", "per_s": 0.0 }),
        json!({ "kind": "constant", "per_s": 1e13 }),
        json!({ "kind": "bursts", "per_s": 10.0, "packets": 0, "every_s": 1.0 }),
        json!({ "kind": "bursts", "per_s": 10.0, "packets": 11, "every_s": 1.0 }),
        json!({ "kind": "on_off", "per_s": 10.0, "on": fixed(0.0), "off": fixed(1.0) }),
        json!({ "kind": "on_off", "per_s": 10.0, "on": fixed(1.0), "off": fixed(-1.0) }),
        json!({ "kind": "adaptive", "target_s": 0.0, "min_per_s": 1.0, "max_per_s": 2.0 }),
        json!({ "kind": "adaptive", "target_s": 0.1, "min_per_s": 3.0, "max_per_s": 2.0 }),
    ] {
        assert!(
            plan(source.clone(), None).source.fault().is_some(),
            "{source}"
        );
    }
}

#[test]
fn only_adaptive_sources_get_echoes() {
    let adaptive =
        json!({ "kind": "adaptive", "target_s": 0.1, "min_per_s": 1.0, "max_per_s": 2.0 });
    let adaptive = plan(adaptive, None);
    let mut source = Source::new(&adaptive, schedule(&adaptive), SECOND, 1, 0);
    let sent = source.poll(SECOND).expect("the first");
    assert!(source.poll(SECOND).is_none(), "the next is due later");
    let packet = sent.packet(0, Kind::Datagram, SECOND);
    let arrival = SECOND + Time::from_milliseconds(7);
    let mut sink = Sink::new(&adaptive, schedule(&adaptive));
    sink.on_packet(&packet, None, arrival);
    let echo = sink.poll(arrival).expect("an echo");
    assert_eq!((echo.wire_bytes, echo.timestamp), (29, SECOND));
    assert!(sink.poll(arrival).is_none(), "one for each datagram");
    source.on_packet(
        &echo.packet(0, Kind::Echo, arrival),
        None,
        SECOND + Time::from_milliseconds(11),
    );
    assert_eq!(source.rtt(), Some(Time::from_milliseconds(11)));
    let constant = plan(json!({ "kind": "constant", "per_s": 1.0 }), None);
    let mut silent = Sink::new(&constant, schedule(&constant));
    silent.on_packet(&packet, None, SECOND);
    assert!(silent.poll(SECOND).is_none());
    assert_eq!(silent.delivered_bytes(), 1);
}
