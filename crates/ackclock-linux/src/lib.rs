//! What runs inside the namespaces of a real Linux kernel: sockets, traffic, `TCP_INFO` and queue samples.
//!
//! One process sets the network up by ordinary `ip`, `tc` and `sysctl` commands, serves all sockets of all namespaces, and
//! writes what it saw as the tables of the dataset.
//!
//! # Few system calls
//!
//! A system call is what costs in a guest, so the kernel is asked to say when there is something to do. A sender is woken
//! when a third of its send buffer is free, and fills it. An immediate reader is woken when [`order::Care::Immediate`]'s share
//! of data is there (`SO_RCVLOWAT`; at each segment in a flow's beginning), and throws it away without copying
//! (`MSG_TRUNC`). A transfer's completion is an event of its own: the acknowledgement of its last byte, of which the
//! kernel tells (`SO_TIMESTAMPING`), or, where the receiver has asked, that byte. An application that stops before its end
//! has not said which byte is its last: there it is the acknowledgement of the FIN.

mod error;
pub mod order;
pub mod result;

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
pub mod store;
#[cfg(target_os = "linux")]
mod stream;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod tables;

pub use error::Error;

/// Carries an order out: sets the network up, runs the traffic, writes the result.
///
/// It must be alone in its network and mount namespaces, with the right to make others.
///
/// # Errors
/// The order is not one, a command failed, or the kernel refused something.
#[cfg(target_os = "linux")]
pub fn carry_out(order: &str) -> Result<(), Error> {
    let prepared = prepare(order, Box::new(tell_on_stdout))?;
    prepared.run(None)
}

/// An order whose network and listeners are there, and whose traffic waits.
#[cfg(target_os = "linux")]
pub struct Prepared {
    run: run::Run,
    result: std::path::PathBuf,
}

/// Sets up what an order needs; `tell` will hear the share of its traffic that is over.
///
/// # Errors
/// As of [`carry_out`].
#[cfg(target_os = "linux")]
pub fn prepare(order: &str, tell: Box<dyn FnMut(f64) + Send>) -> Result<Prepared, Error> {
    let order = order::Order::parse(order)?;
    let result = order.result.clone();
    Ok(Prepared {
        run: run::Run::new(order, tell)?,
        result,
    })
}

#[cfg(target_os = "linux")]
impl Prepared {
    /// Runs the traffic and writes the result. It begins as soon as it can, or at `zero_ns` of the monotonic clock.
    ///
    /// # Errors
    /// As of [`carry_out`].
    pub fn run(mut self, zero_ns: Option<i64>) -> Result<(), Error> {
        self.run.begin_at(zero_ns)?;
        let tables = self.run.finish()?;
        result::write(&tables, &self.result)
    }
}

#[cfg(target_os = "linux")]
fn tell_on_stdout(share: f64) {
    use std::io::Write;
    // Nobody may be listening.
    let _ = writeln!(std::io::stdout(), "progress {share:.2}");
}

/// As on Linux, where alone it can be.
///
/// # Errors
/// This is not Linux.
#[cfg(not(target_os = "linux"))]
pub fn carry_out(order: &str) -> Result<(), Error> {
    order::Order::parse(order)?;
    Err(Error::Order("it needs Linux".to_owned()))
}
