//! Parameters: those of the algorithm spec are taken, others are refused in words.

use ackclock_sim::queue::{FlowHeaders, QueueContext};
use ackclock_sim::{queue, PlanError};
use serde_json::{json, Value};

use crate::kit::cards::{congestion_controls, disciplines};

const SURROUNDINGS: QueueContext = QueueContext {
    rate_bps: 1e7,
    seed: 1,
    frame_bytes: 14,
    headers: FlowHeaders::NONE,
};

/// Make an algorithm from other parameters.
type Make = Box<dyn Fn(&Value) -> Result<(), PlanError>>;

/// Name, complete parameters, and a way to try others, of every algorithm.
fn every() -> Vec<(String, Value, Make)> {
    let mut all: Vec<(String, Value, Make)> = Vec::new();
    for plan in congestion_controls() {
        let kind = plan.kind.clone();
        let make = move |values: &Value| {
            ackclock_congestion::make(&kind, values, 10)?;
            Ok(())
        };
        all.push((plan.kind, plan.parameters, Box::new(make)));
    }
    for plan in disciplines(20) {
        let name = plan.discipline.clone();
        let make = move |values: &Value| queue::make(&name, values, &SURROUNDINGS).map(drop);
        all.push((plan.discipline, plan.parameters, Box::new(make)));
    }
    all
}

#[test]
fn the_card_s_parameters_are_taken() {
    for (name, parameters, make) in every() {
        if let Err(error) = make(&parameters) {
            panic!("{name}: {error}");
        }
    }
}

#[test]
fn a_missing_or_extra_parameter_is_rejected_with_the_algorithm_name() {
    for (name, parameters, make) in every() {
        let mut more = parameters.clone();
        more["no_such_parameter"] = json!(1);
        let mut wrong = vec![more];
        for key in parameters.as_object().expect("a table").keys() {
            // What the algorithm spec leaves open may be left out.
            if !parameters[key].is_null() {
                let mut fewer = parameters.clone();
                fewer.as_object_mut().expect("a table").remove(key);
                wrong.push(fewer);
            }
        }
        for values in wrong {
            let error = make(&values).expect_err("other parameters than the card's");
            assert!(error.to_string().contains(&name), "{name}: {error}");
        }
    }
}

#[test]
fn a_string_instead_of_a_number_is_rejected() {
    for (name, parameters, make) in every() {
        for key in parameters.as_object().expect("a table").keys() {
            let mut wrong = parameters.clone();
            wrong[key] = json!("no such value");
            assert!(make(&wrong).is_err(), "{name}: {key}");
        }
    }
}
