//! Carries an order out without Python: `unshare -Urnm cargo run --example inside -- order.json`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: inside order.json");
        return ExitCode::from(2);
    };
    let order = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"));
    let outcome = order
        .and_then(|order| ackclock_linux::carry_out(&order).map_err(|error| error.to_string()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
