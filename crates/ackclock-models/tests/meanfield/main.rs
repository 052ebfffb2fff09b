//! The mean-field model against values that were computed apart from it, and against itself.

mod gates;
mod lattice;
mod particles;
mod properties;
mod reference;
mod scaling;
mod setups;
mod values;
