//! The guard: undoes an agent's changes when the agent has exited or received nothing for too long.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{kill_process, setsid, Pid, Signal};

use crate::changes;

/// The name that one guard at a time has on a host, or in a network namespace, until all is undone: an abstract socket,
/// which is no file and no port, and ends with its owner.
const NAME: &[u8] = b"ackclock-agent";
/// The first line of a guard that holds the name.
pub const NAME_HELD: &str = "held";

/// Watch an agent over standard input; report on standard output the changes that could not be undone.
pub fn watch(folder: &Path, agent: i32, patience: Duration) -> io::Result<()> {
    // A signal that ends the agent's session must not end the guard. It may lead a session already.
    let _ = setsid();
    let name = SocketAddr::from_abstract_name(NAME)?;
    let held = UnixDatagram::bind_addr(&name);
    writeln!(
        io::stdout(),
        "{}",
        if held.is_ok() { NAME_HELD } else { "taken" }
    )?;
    if !wait(patience)? {
        if let Some(agent) = Pid::from_raw(agent) {
            let _ = kill_process(agent, Signal::KILL);
        }
    }
    let problems = changes::undo_all(folder);
    fs::remove_dir_all(folder)?;
    for problem in problems {
        // The agent may be gone.
        let _ = writeln!(io::stdout(), "{problem}");
    }
    Ok(())
}

/// Wait for the end of what comes; false if nothing came for so long.
fn wait(patience: Duration) -> io::Result<bool> {
    let mut input = io::stdin();
    let mut responses = Instant::now();
    loop {
        let left = patience.saturating_sub(responses.elapsed());
        if left.is_zero() {
            return Ok(false);
        }
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let fd = input.as_fd().try_clone_to_owned()?;
        let mut request = [PollFd::new(&fd, PollFlags::IN)];
        match poll(&mut request, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match input.read(&mut [0; 512]) {
            Ok(0) => return Ok(true),
            Ok(_) => responses = Instant::now(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
