//! N flows through queues as delay differential equations, with loss synchronisation.
//!
//! S. Kumar, M. Azad, S.-J. Park: A fluid-based simulation study: the effect of loss synchronization on
//! sizing buffers over 10 Gbps high speed networks, PFLDNeT 2010; S. Kumar, S.-J. Park, S. S. Iyengar: A
//! loss-event driven scalable fluid simulation method for high-speed networks, Computer Networks 54(1),
//! 2010; V. Misra, W.-B. Gong, D. Towsley: Fluid-based analysis of a network of AQM routers supporting
//! TCP flows, SIGCOMM 2000.
//!
//! ```text
//!   R_i = T_i + Σ q_l / C_l       A_i = W_i / R_i       AR_l = Σ A_i
//!   dW_i/dt = a_i / R_i           dq_l/dt = AR_l − C_l, kept within [0, B_l]
//! ```
//!
//! Where a queue is full and AR > C, an *event* opens: the [`synchronisation`] controller says how many
//! flows it hits, the [`victims`] controller which. While the queue is full, these lose AR − C in
//! proportion to their rates. Each of them reduces its window one round trip later, once, and is then
//! immune for one more. The event closes when all have; if the queue still overflows, the next opens.
//!
//! Deviations from the print:
//! - dq/dt is AR − C at every backlog above 0. As printed, with the service in force only while q > 0,
//!   an empty queue would grow though AR < C.
//! - Losses are jumps at events. With the printed −W b λ, the windows slide along AR = C and every variant
//!   fills the link whatever its buffer. That form is `synchronisation = "none"`.
//! - With early drops (RED), losses are a Poisson process of each flow with the rate A_i p; in the form
//!   without synchronisation they are smooth.

pub mod counters;
pub mod growth;
pub mod loss_assignment;
pub mod plan;
pub mod queue;
pub mod record;
pub mod synchronisation;

mod batch;
mod checks;
mod events;
mod ledger;
mod network;
mod random;
mod solver;
#[cfg(test)]
mod tests;
mod unsynchronised;

pub use batch::run_many;
pub use checks::PlanError;
pub use plan::Plan;
pub use record::Outcome;

/// Run a plan: the same plan and seed give the same outcome, bit for bit.
///
/// # Errors
/// The plan is not one that can be run.
pub fn run(plan: &Plan, seed: u64) -> Result<Outcome, PlanError> {
    Ok(solver::Solver::new(plan, seed)?.run())
}
