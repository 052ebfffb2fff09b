//! Any segments of a few connections, in any order and at any time: each byte that was seen has one fate.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../tests/all/kit/invariants.rs"]
mod invariants;

fuzz_target!(|bytes: &[u8]| invariants::as_segments(bytes));
