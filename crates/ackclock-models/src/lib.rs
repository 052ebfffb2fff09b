//! Models of many flows through a queue, as differential equations.
//!
//! [`fluid`] follows each of N flows, with a controller of how their losses coincide; [`meanfield`]
//! follows the distribution of infinitely many. Both are deterministic and read no clock; random
//! numbers come from the seed alone. Units throughout: windows and backlogs in packets, rates in
//! packets per second, times in seconds, all in `f64`.

pub mod fluid;
pub mod meanfield;
pub mod red;
