//! Carries a run spec out without Python: `unshare -Urnm cargo run --example inside -- run_spec.json`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: inside order.json");
        return ExitCode::from(2);
    };
    let run_spec = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"));
    let outcome = run_spec
        .and_then(|run_spec| ackclock_linux::execute(&run_spec).map_err(|error| error.to_string()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
