//! Properties of every plan: conservation, order, bounds, completion, determinism.

mod accounts;
mod algorithms;
mod bounds;
mod completion;
pub mod determinism;
mod extremes;
mod graphs;
mod ground_truth;
mod leaps;
mod plans;
mod queues;
mod random_loss;
mod recording;
