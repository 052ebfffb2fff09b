//! Workloads: which transfers begin when, between whom, and how large they are.
//!
//! A [`Workload`] is the plan of one generator, a [`Population`] lists the participants, and [`generate`]
//! draws all [`Transfer`]s of a run ahead. Every engine that gets the same workload and seed so gets the
//! same arrivals and the same sizes.
//!
//! ```
//! use ackclock_traffic::{generate, Population, Start, Workload};
//! use ackclock_core::Time;
//!
//! // Ten connections a second with Zipf sizes, as in Braud 2016 chapter 7.4.
//! let workload: Workload = serde_json::from_str(
//!     r#"{
//!         "start_s": 0, "stop_s": null,
//!         "arrivals": { "kind": "poisson", "per_s": 10 },
//!         "size": { "kind": "zipf", "exponent": 1.7, "most": 6200, "unit_bytes": 1448 }
//!     }"#,
//! )?;
//! let made = generate(&workload, Population::Paths(1), Time::from_seconds(60.0), 1, 0)?;
//! let first = &made.transfers[0];
//! assert!(matches!(first.start, Start::At(time) if time < made.stop));
//! assert_eq!(first.size_bytes.map(|bytes| bytes % 1448), Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Transfers that wait for nothing need not be drawn ahead: with [`supply`], Poisson and periodic arrivals are
//! drawn one by one, and are the same.
//!
//! # Closed loops
//!
//! Some transfers begin when others are complete, which only the engine knows. Such a transfer waits for
//! a [`Gate`]; a gate counts completions and opens, perhaps after a think time. Sizes, think times and
//! ends are drawn ahead all the same. A loop is drawn until its think times alone reach the end of the
//! run, as though transfers took no time; what a run does not come to never begins. A loop without think
//! times needs a limit, or it is rejected.
//!
//! # Randomness
//!
//! There is a [`stream`] of random numbers for each [`Purpose`]: arrivals, ends, sizes, think times and so
//! on. It depends on the seed, the number of the workload and the purpose alone. So two scenarios that
//! differ in the size distribution have the same transfers at the same times (common random numbers);
//! in a closed loop each pair has streams of its own. A longer run begins with the same transfers.
//!
//! # Sizes
//!
//! Heavy tails are truncated in the open: [`Size`] declares where and how. A Zipf law ends at its largest
//! number of units; the others take a [`Truncation`] by drawing again or by clipping, or none.

mod count;
mod departures;
mod duration;
mod error;
mod generate;
mod generated;
mod plan;
mod population;
mod random;
mod schedule;
mod size;
mod slow_reader;
mod writes;

pub use count::Count;
pub use departures::{DatagramSource, Departures};
pub use duration::Duration;
pub use error::WorkloadError;
pub use generate::{generate, supply, Arriving, Supply};
pub use generated::{Gate, Generated, Start, Transfer, MAX_TRANSFERS};
pub use plan::{Arrivals, Web, Workload};
pub use population::{Ends, Pairing, Population};
pub use random::{flow_stream, host_stream, start_draw, stream, Purpose};
pub use schedule::Schedule;
pub use size::{Size, SizeSampler, Truncation, LARGEST_BYTES};
pub use slow_reader::{Pause, Reads, SlowReader};
pub use writes::Writes;
