//! The JSON of plans: every field is required, no other is taken.

use serde_json::{json, Map, Value};

use super::*;

/// A workload of each kind of arrivals and of sizes.
fn examples() -> Vec<Value> {
    let think = json!({ "kind": "exponential", "mean_s": 1.5 });
    let cut = json!({ "kind": "redraw", "most_bytes": 10_000_000 });
    let arrivals = [
        json!({ "kind": "once", "jitter_s": 0.1 }),
        json!({ "kind": "poisson", "per_s": 8.5 }),
        json!({ "kind": "periodic", "every_s": 0.2 }),
        json!({ "kind": "sources", "jitter_s": 0, "think": think, "transfers": null }),
        json!({
            "kind": "web", "jitter_s": 1, "think": { "kind": "pareto", "shape": 1.4, "least_s": 1 },
            "pages": null, "size_main": null, "objects": { "kind": "geometric", "mean": 5 },
            "parallel": 6,
        }),
        json!({ "kind": "incast", "senders": 32, "every_s": null, "rounds": 10 }),
    ];
    let sizes = [
        json!({ "kind": "fixed", "bytes": 2_000_000 }),
        json!({ "kind": "exponential", "mean_bytes": 30_000, "truncation": null }),
        json!({ "kind": "lognormal", "median_bytes": 9000, "sigma": 1.2, "truncation": cut }),
        json!({ "kind": "pareto", "shape": 1.16, "least_bytes": 1370, "truncation": cut }),
        json!({ "kind": "zipf", "exponent": 1.7, "most": 6200, "unit_bytes": 1448 }),
        json!({ "kind": "empirical", "points": [[1000, 0.15], [10_000, 0.5], [1_000_000, 1]] }),
    ];
    let both = arrivals.into_iter().zip(sizes);
    let workload = |(arrivals, size)| json!({ "start_s": 0, "stop_s": null, "arrivals": arrivals, "size": size });
    both.map(workload).collect()
}

/// Apply `change` to each table in the value, one at a time.
fn changed(value: &Value, change: &dyn Fn(&Map<String, Value>) -> Vec<Value>) -> Vec<Value> {
    let Value::Object(table) = value else {
        return Vec::new();
    };
    let mut all = change(table);
    for (key, inner) in table {
        for other in changed(inner, change) {
            let mut table = table.clone();
            table.insert(key.clone(), other);
            all.push(Value::Object(table));
        }
    }
    all
}

fn parses(value: &Value) -> bool {
    serde_json::from_value::<Workload>(value.clone()).is_ok()
}

#[test]
fn each_field_is_required_and_no_other_is_taken() {
    let without_one = |table: &Map<String, Value>| {
        let without = |key: &String| {
            let mut table = table.clone();
            table.remove(key);
            Value::Object(table)
        };
        table.keys().map(without).collect()
    };
    let with_one_more = |table: &Map<String, Value>| {
        let mut table = table.clone();
        table.insert("colour".to_owned(), json!(null));
        vec![Value::Object(table)]
    };
    for example in examples() {
        assert!(parses(&example), "{example}");
        let mut broken = changed(&example, &without_one);
        broken.extend(changed(&example, &with_one_more));
        assert!(broken.len() > 8);
        for broken in broken {
            assert!(!parses(&broken), "{broken}");
        }
    }
}

/// An estimate, to refuse early what is far too much; the limit itself is watched while transfers are made.
#[test]
fn the_expected_number_is_that_of_fixed_arrivals() {
    let think = Duration::Fixed { s: 2.0 };
    let sources = |transfers| Arrivals::Sources {
        jitter: Time::ZERO,
        think,
        transfers,
    };
    assert_eq!(sources(None).expected(3.0, 10.0), 18.0);
    assert_eq!(sources(Some(4)).expected(3.0, 10.0), 12.0);
    let incast = |every, rounds| Arrivals::Incast {
        senders: 5,
        every,
        rounds,
    };
    assert_eq!(incast(None, Some(7)).expected(1.0, 10.0), 35.0);
    let second = Some(Time::from_seconds(1.0));
    assert_eq!(incast(second, Some(7)).expected(1.0, 10.0), 35.0);
    assert_eq!(incast(second, None).expected(1.0, 10.0), 50.0);
}
