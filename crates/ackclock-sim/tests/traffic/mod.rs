//! Generated transfers, requests, datagrams, media and QUIC on links, against closed forms.

mod datagrams;
mod external;
mod media;
mod quic;
mod quic_controllers;
mod requests;
mod transfers;

use ackclock_core::tables::{Tables, Totals};
use ackclock_plan::Plan;
use ackclock_sim::Simulation;

/// Run a plan to its end.
fn run(plan: &Plan, seed: u64) -> (Simulation, Tables, Totals) {
    let mut simulation = Simulation::new(plan, seed).expect("a sound plan");
    simulation.advance(plan.duration);
    let (tables, totals) = (simulation.drain(), simulation.finish());
    (simulation, tables, totals)
}
