//! The algorithm specs of the catalog, as the engine gets them: every parameter with its default, in SI units.

use std::path::{Path, PathBuf};

use ackclock_congestion::{realtime, CONTROLLERS};
use ackclock_plan::{CongestionPlan, QueuePlan};
use ackclock_sim::queue::DISCIPLINES;
use serde_json::{Map, Number, Value};
use toml::{Table, Value as Toml};

/// Wire bytes of a full packet, where a limit in bytes stands for one in packets.
const PACKET_BYTES: f64 = 1600.0;

/// Every congestion control with its defaults, and with each of its variants.
pub fn congestion_controls() -> Vec<CongestionPlan> {
    let of_card = |&(name, _): &(&'static str, _)| {
        let variants = parameter_sets("congestion", name, 0.0);
        variants.into_iter().map(move |parameters| CongestionPlan {
            kind: name.to_owned(),
            parameters,
        })
    };
    CONTROLLERS.iter().flat_map(of_card).collect()
}

/// Every queue discipline with its defaults and variants, and room for so many packets.
pub fn disciplines(limit_packets: u32) -> Vec<QueuePlan> {
    let of_card = |&(name, _): &(&'static str, _)| {
        let variants = parameter_sets("queue", name, f64::from(limit_packets));
        variants.into_iter().map(move |parameters| QueuePlan {
            discipline: name.to_owned(),
            parameters,
        })
    };
    DISCIPLINES.iter().flat_map(of_card).collect()
}

/// Every congestion control of real-time media with its defaults.
pub fn realtime_controls() -> Vec<CongestionPlan> {
    let of_card = |&(name, _): &(&'static str, _)| {
        let variants = parameter_sets("realtime", name, 0.0);
        variants.into_iter().map(move |parameters| CongestionPlan {
            kind: name.to_owned(),
            parameters,
        })
    };
    realtime::CONTROLLERS.iter().flat_map(of_card).collect()
}

/// An algorithm spec's defaults, then those of each variant; what is called `limit` holds `limit_packets`.
fn parameter_sets(family: &str, name: &str, limit_packets: f64) -> Vec<Value> {
    let card = read(family, name);
    let none = Table::new();
    let tables = |key: &str| {
        card.get(key)
            .and_then(Toml::as_table)
            .unwrap_or(&none)
            .clone()
    };
    let (mut parameters, variants) = (tables("parameters"), tables("variants"));
    if let Some(default) = card.get("slow_start") {
        // The parameter is described elsewhere, as one of many specs.
        let shared = [("kind", Toml::from("choice")), ("default", default.clone())];
        let shared: Table = shared
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect();
        parameters.insert("slow_start".to_owned(), shared.into());
    }
    let of_variant = |variant: &Toml| variant.get("parameters").and_then(Toml::as_table).cloned();
    let sets = std::iter::once(Table::new()).chain(variants.values().filter_map(of_variant));
    sets.map(|given| complete(&parameters, &given, limit_packets))
        .collect()
}

fn complete(parameters: &Table, given: &Table, limit_packets: f64) -> Value {
    let mut values = Map::new();
    for (name, parameter) in parameters {
        let kind = parameter["kind"].as_str().expect("a kind is a text");
        let value = given.get(name).or_else(|| parameter.get("default"));
        let value = match (name.as_str(), kind) {
            ("limit", "bytes") => integer(limit_packets * PACKET_BYTES),
            ("limit", _) => integer(limit_packets),
            _ => value.map_or(Value::Null, |value| plain(kind, value)),
        };
        values.insert(format!("{name}{}", suffix(kind)), value);
    }
    Value::Object(values)
}

fn read(family: &str, name: &str) -> Table {
    let path = catalog().join(family).join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("every algorithm has a card: {}: {error}", path.display()));
    text.parse().expect("a card is TOML")
}

fn catalog() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/ackclock/algorithms")
}

fn suffix(kind: &str) -> &'static str {
    match kind {
        "time" => "_s",
        "rate" => "_bps",
        "bytes" => "_bytes",
        "packets" => "_packets",
        _ => "",
    }
}

/// A value in SI units: sizes are whole numbers.
fn plain(kind: &str, value: &Toml) -> Value {
    match (kind, value) {
        (_, Toml::Boolean(value)) => Value::Bool(*value),
        (_, Toml::Integer(value)) if kind == "integer" => Value::Number((*value).into()),
        (_, Toml::Integer(value)) => fraction(*value as f64),
        (_, Toml::Float(value)) => fraction(*value),
        ("choice" | "text", Toml::String(value)) => Value::String(value.clone()),
        ("bytes" | "packets", Toml::String(value)) => integer(quantity(value)),
        (_, Toml::String(value)) => fraction(quantity(value)),
        _ => panic!("a default of an unknown form: {value:?}"),
    }
}

/// `4ms` is 0.004, `64KB` is 64000, `4Mbit` is 4e6.
fn quantity(text: &str) -> f64 {
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "s" | "B" | "p" | "bit" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        "KB" | "Kbit" => 1e3,
        "MB" | "Mbit" => 1e6,
        "GB" | "Gbit" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "h" => 3600.0,
        "min" => 60.0,
        _ => panic!("a unit that the cards do not have: {text}"),
    };
    factor
        * number
            .trim()
            .parse::<f64>()
            .expect("a number before the unit")
}

fn integer(value: f64) -> Value {
    Value::Number((value as u64).into())
}

fn fraction(value: f64) -> Value {
    Value::Number(Number::from_f64(value).expect("a finite number"))
}
