//! Any bytes as a capture: what is whole in it is read, the rest has its reason, and the analysis ends.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../tests/all/kit/invariants.rs"]
mod invariants;

fuzz_target!(|bytes: &[u8]| invariants::as_a_file(bytes));
