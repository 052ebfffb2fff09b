//! Routed networks: besides explicit paths, and with links that change.

mod agreement;
mod changes;
mod failures;
mod generated;
mod impairments;
mod reordering;
mod threads;
