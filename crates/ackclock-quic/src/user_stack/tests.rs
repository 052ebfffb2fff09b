//! Processes that break the protocol, and bytes that are no responses. The shell stands for a stack's process.

use std::time::Duration;

use ackclock_core::Time;
use ackclock_plan::StackPlan;
use proptest::prelude::*;

use super::wire::{Request, State};
use super::{Stack, StackFailure};
use crate::Role;

/// A response without a request: the library was loaded.
const LOADED: &str = r"printf '\1\0\0\0\0'";

fn plan() -> StackPlan {
    StackPlan {
        stack: "mine".to_owned(),
        congestion: String::new(),
        options: String::new(),
        start_jitter: Time::ZERO,
        size_bytes: None,
        initial_window_bytes: 12_000,
        max_payload_bytes: 1472,
        receive_window_bytes: 1_250_000,
        ecn: true,
    }
}

/// The error of a first call to a process that runs a script; its socket is also its output 3.
fn failure(script: &str, patience_ms: u64) -> String {
    let script = format!("exec 1>&0; {script}");
    let command = ["sh", "-c", &script].map(str::to_owned);
    let opened = Stack::start("mine", &command, Duration::from_millis(patience_ms));
    let plan = plan();
    let opening = Request::New {
        plan: &plan,
        role: Role::Client,
        stop: Time::NEVER,
        seed: 1,
    };
    let called = opened.and_then(|stack| stack.call(&opening, 0, Time::from_milliseconds(1500)));
    called.unwrap_err().to_string()
}

#[test]
fn a_process_that_ends_is_reported_with_its_status() {
    let found = failure(&format!("{LOADED}; head -c 1 >/dev/null; exit 7"), 60_000);
    assert_eq!(
        found,
        "stack \"mine\": its process ended (exit status: 7) in ackclock_new at 1.5 s"
    );
    let found = failure("kill -SEGV $$", 60_000);
    let (signal, call) = ("its process ended (signal: 11 (SIGSEGV)", " in loading it");
    assert!(found.contains(signal) && found.ends_with(call), "{found}");
}

#[test]
fn a_process_that_does_not_return_is_given_up() {
    let found = failure(&format!("{LOADED}; sleep 60"), 20);
    assert_eq!(
        found,
        "stack \"mine\": no return within 0.02 s from ackclock_new at 1.5 s: an endless loop"
    );
}

#[test]
fn a_broken_contract_is_its_sentence() {
    let found = failure(r"printf '\4\0\0\0\1no!'", 60_000);
    assert_eq!(found, "stack \"mine\": no!");
}

#[test]
fn garbage_is_no_response() {
    let found = failure(
        &format!(r"{LOADED}; printf '\3\0\0\0\0ab'; sleep 60"),
        60_000,
    );
    assert!(
        found.ends_with("sent 2 bytes that are no response, after ackclock_new at 1.5 s"),
        "{found}"
    );
    let found = failure(r"printf '\377\377\377\377'; sleep 60", 60_000);
    assert!(
        found.ends_with("announced a response of 4294967295 bytes, after loading it"),
        "{found}"
    );
    let found = failure(r"printf '\0\0\0\0'; sleep 60", 60_000);
    assert!(
        found.ends_with("sent 0 bytes that are no response, after loading it"),
        "{found}"
    );
}

#[test]
fn a_program_that_does_not_exist_is_reported() {
    let command = ["/no/such/program".to_owned()];
    let failed = Stack::start("mine", &command, Duration::from_secs(60));
    let found = failed.err().as_ref().map(StackFailure::to_string);
    assert!(found.unwrap().contains("No such file"));
}

proptest! {
    /// Any bytes are a state or none; they are never a panic.
    #[test]
    fn any_bytes_are_a_state_or_none(content in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = State::read(&content);
    }

    /// Bytes after the last datagram, and a datagram that is cut, are rejected.
    #[test]
    fn a_state_has_exactly_its_bytes(lengths in prop::collection::vec(0_usize..40, 0..5), cut in 1_usize..10) {
        let mut content = vec![7; 8 + 8 + 4 + 7 * 8];
        content.extend((lengths.len() as u32).to_le_bytes());
        for &length in &lengths {
            content.extend((length as u32).to_le_bytes());
            content.push(2);
            content.extend(vec![9; length]);
        }
        let state = State::read(&content).unwrap();
        let found: Vec<usize> = state.datagrams.iter().map(|datagram| datagram.bytes.len()).collect();
        prop_assert_eq!(found, lengths);
        prop_assert_eq!(State::read(&content[..content.len() - cut]), None);
        content.push(0);
        prop_assert_eq!(State::read(&content), None);
    }
}
