//! The tables that engines fill, each column said once.
//!
//! A table is a struct with a vector for each column ([`table!`]); several are a record ([`record!`]), which becomes
//! named columns when it is handed over. Codes in a column are those of an enum with a word for each ([`kinds!`]). The
//! tables of the dataset are in [`tables`]; an engine that counts otherwise, in fractions of packets for example, defines
//! its own with the same macros.
//!
//! Absent values are NaN in float columns and the type's largest value in integer ones. A column that an engine does
//! not fill at all is not handed over.

mod column;
mod kinds;
pub mod tables;

pub use column::{filled, put, Cell, Column, Columns, NamedTables};
pub use kinds::{Action, Cause, End, Fate, Happening, Limit};
pub use tables::{
    CubicSamples, Delays, Events, FlowSamples, Flows, Links, Packets, Paths, QueueSamples, Tables,
    Totals, Transmissions,
};

/// Stands for "no flow", "no link" or "no node".
pub const NONE: u32 = u32::MAX;

/// Stands for a count that is not known.
pub const UNKNOWN: u64 = u64::MAX;
