//! Routed networks: beside explicit paths, and with links that change.

#[path = "../kit/mod.rs"]
mod kit;

mod agreement;
mod changes;
mod failures;
mod generated;
