//! Execution of a plan inside the namespaces of a real Linux kernel: sockets, traffic, `TCP_INFO` and queue samples.
//!
//! One process sets the network up by ordinary `ip`, `tc` and `sysctl` commands, serves all sockets of all namespaces,
//! and writes the tables of the dataset.
//!
//! # Few system calls
//!
//! System calls dominate the cost in a guest, so the process waits for the kernel's notifications. A sender is woken
//! when a third of its send buffer is free, and fills it. An immediate reader ([`run_spec::AppTiming::Immediate`]) is
//! woken when its low-water mark is reached (`SO_RCVLOWAT`; at each segment at the start of a flow), and discards the
//! data without copying (`MSG_TRUNC`). A transfer's completion is an event of its own: the acknowledgement of its last
//! byte, which the kernel reports (`SO_TIMESTAMPING`), or, where the receiver has sent a request, that byte. For an
//! application that stops before its end, completion is the acknowledgement of the FIN, since its last byte was not
//! marked.

mod error;
pub mod result;
pub mod run_spec;

#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod connection;
#[cfg(target_os = "linux")]
mod drops;
#[cfg(target_os = "linux")]
mod frame;
#[cfg(target_os = "linux")]
pub mod gaps;
#[cfg(target_os = "linux")]
mod hosts;
#[cfg(target_os = "linux")]
mod info;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
mod opportunities;
#[cfg(target_os = "linux")]
mod plans;
#[cfg(target_os = "linux")]
mod queues;
#[cfg(target_os = "linux")]
mod rows;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod setup;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
pub mod store;
#[cfg(target_os = "linux")]
mod stream;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod tables;

pub use error::Error;
#[cfg(target_os = "linux")]
pub use info::Info;
#[cfg(target_os = "linux")]
pub use sockets::{tcp_sockets, TcpSocket};
#[cfg(target_os = "linux")]
pub use sys::duplicate;

/// Execute a run spec: set the network up, run the traffic, write the result.
///
/// The process must have its own network and mount namespaces, and the right to create others.
///
/// # Errors
/// The run spec is invalid, a command failed, or a system call failed.
#[cfg(target_os = "linux")]
pub fn execute(run_spec: &str) -> Result<(), Error> {
    let prepared = prepare(run_spec, Box::new(print_progress))?;
    prepared.run(None)
}

/// A prepared run: the network and listeners exist, and the traffic waits.
#[cfg(target_os = "linux")]
pub struct Prepared {
    run: run::Run,
    result: std::path::PathBuf,
}

/// Set up the network of a run spec; `on_progress` gets the finished share of the run.
///
/// # Errors
/// See [`execute`].
#[cfg(target_os = "linux")]
pub fn prepare(run_spec: &str, on_progress: Box<dyn FnMut(f64) + Send>) -> Result<Prepared, Error> {
    let run_spec = run_spec::RunSpec::parse(run_spec)?;
    let result = run_spec.result.clone();
    Ok(Prepared {
        run: run::Run::new(run_spec, on_progress)?,
        result,
    })
}

#[cfg(target_os = "linux")]
impl Prepared {
    /// Run the traffic and write the result. Start at once, or at `zero_ns` of the monotonic clock.
    ///
    /// # Errors
    /// See [`execute`].
    pub fn run(mut self, zero_ns: Option<i64>) -> Result<(), Error> {
        self.run.begin_at(zero_ns)?;
        let tables = self.run.finish()?;
        result::write(&tables, &self.result)
    }
}

#[cfg(target_os = "linux")]
fn print_progress(share: f64) {
    use std::io::Write;
    // Standard output may be closed.
    let _ = writeln!(std::io::stdout(), "progress {share:.2}");
}

/// Report that a run requires Linux.
///
/// # Errors
/// This is not Linux.
#[cfg(not(target_os = "linux"))]
pub fn execute(run_spec: &str) -> Result<(), Error> {
    run_spec::RunSpec::parse(run_spec)?;
    Err(Error::RunSpec("it requires Linux".to_owned()))
}
