//! The agent: what runs on a host of a testbed while a scenario does.
//!
//! It is copied into a private folder, reads requests on standard input and writes responses to standard output, a line
//! of JSON each. It listens on no port but those of the scenario's own traffic.
//!
//! ```text
//!   agent serve FOLDER SECONDS     executes requests; ends with its standard input
//!     └─ agent guard FOLDER PID SECONDS     undoes what was changed, removes the folder, and ends
//! ```
//!
//! Each change is in the journal before it is made. The guard undoes all changes when the agent has ended, however it
//! did, and when no message arrived for so many seconds: then it kills the agent first, which may hang.

#[cfg(target_os = "linux")]
mod changes;
#[cfg(target_os = "linux")]
mod commands;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod messages;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod sys;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::path::Path;
    use std::process::ExitCode;
    use std::time::Duration;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let seconds = |word: &str| word.parse().map(Duration::from_secs).ok();
    let send_done = match arguments[..] {
        ["serve", folder, patience] => {
            seconds(patience).map(|patience| serve::serve(Path::new(folder), patience))
        }
        ["guard", folder, agent, patience] => seconds(patience)
            .zip(agent.parse().ok())
            .map(|(patience, agent)| guard::watch(Path::new(folder), agent, patience)),
        ["--version"] => {
            println!("ackclock-agent {}", env!("CARGO_PKG_VERSION"));
            Some(Ok(()))
        }
        _ => None,
    };
    match send_done {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("ackclock-agent: {error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!(
                "ackclock-agent {}: it is started by ackclock",
                env!("CARGO_PKG_VERSION")
            );
            ExitCode::from(2)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("ackclock-agent: it requires Linux");
}
