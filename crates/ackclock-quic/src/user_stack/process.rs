//! The process of a stack: a child with a socket as its standard input, one response for each request.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ackclock_core::Time;

use super::wire::{self, Request, State};

/// Loading a library may take so long: on a busy machine the start of a process is slow.
const LOADING: Duration = Duration::from_secs(60);
/// The largest response.
const MAX_RESPONSE_BYTES: u32 = 1 << 28;

/// A failure of a user's stack, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stack \"{name}\": {reason}")]
pub struct StackFailure {
    name: String,
    reason: String,
}

/// A stack's process, which ends when the last handle is dropped.
#[derive(Clone)]
pub struct Stack(Arc<Mutex<Process>>);

struct Process {
    name: String,
    child: Child,
    stream: BufReader<UnixStream>,
    patience: Duration,
}

impl Stack {
    /// Start the process that hosts a stack. A call that takes longer than `patience` is taken for an endless loop; the
    /// time is the host's, and has no influence on a run that does not fail.
    ///
    /// # Errors
    /// The process cannot be started, or the library cannot be loaded.
    pub fn start(
        name: &str,
        command: &[String],
        patience: Duration,
    ) -> Result<Stack, StackFailure> {
        let failure = |reason: String| StackFailure {
            name: name.to_owned(),
            reason,
        };
        let started = spawn(command).map_err(|error| failure(error.to_string()))?;
        let (child, stream) = started;
        let mut process = Process {
            name: name.to_owned(),
            child,
            stream: BufReader::new(stream),
            patience: LOADING,
        };
        process.response("loading it").map_err(failure)?;
        process
            .wait_for(patience)
            .map_err(|error| failure(error.to_string()))?;
        Ok(Stack(Arc::new(Mutex::new(process))))
    }

    /// Make a call at a time for an endpoint.
    pub(super) fn call(
        &self,
        request: &Request,
        endpoint: u32,
        now: Time,
    ) -> Result<State, StackFailure> {
        let mut process = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let call = format_args!("{} at {} s", request.name(), now.seconds()).to_string();
        process
            .state(&request.frame(endpoint, now), &call)
            .map_err(|reason| StackFailure {
                name: process.name.clone(),
                reason,
            })
    }
}

/// Start a process with a socket as its standard input. What it prints goes to standard error.
fn spawn(command: &[String]) -> std::io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(LOADING))?;
    let (program, arguments) = command.split_first().ok_or(ErrorKind::InvalidInput)?;
    let printed = std::io::stderr().as_fd().try_clone_to_owned()?;
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(printed))
        .spawn()?;
    Ok((child, ours))
}

impl Process {
    /// Wait for each response so long.
    fn wait_for(&mut self, patience: Duration) -> std::io::Result<()> {
        self.patience = patience;
        self.stream.get_ref().set_read_timeout(Some(patience))?;
        self.stream.get_ref().set_write_timeout(Some(patience))
    }

    fn state(&mut self, request: &[u8], call: &str) -> Result<State, String> {
        let sent = self.stream.get_mut().write_all(request);
        sent.map_err(|error| self.reason(&error, call))?;
        let response = self.response(call)?;
        State::read(&response).ok_or_else(|| {
            format!(
                "its process sent {} bytes that are no response, after {call}",
                response.len()
            )
        })
    }

    /// The next response without its first byte, which says whether the library keeps the contract.
    fn response(&mut self, call: &str) -> Result<Vec<u8>, String> {
        let content = self.frame().map_err(|error| self.reason(&error, call))?;
        match content.split_first() {
            Some((&wire::OK, state)) => Ok(state.to_vec()),
            Some((&wire::BROKEN, sentence)) => Err(String::from_utf8_lossy(sentence).into_owned()),
            _ => Err(format!(
                "its process sent {} bytes that are no response, after {call}",
                content.len()
            )),
        }
    }

    fn frame(&mut self) -> std::io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length > MAX_RESPONSE_BYTES {
            return Err(std::io::Error::other(format!(
                "its process announced a response of {length} bytes"
            )));
        }
        let mut content = vec![0; length as usize];
        self.stream.read_exact(&mut content)?;
        Ok(content)
    }

    /// Return the reason for which a call has no response.
    fn reason(&mut self, error: &std::io::Error, call: &str) -> String {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => format!(
                "no return within {} s from {call}: an endless loop",
                self.patience.as_secs_f64()
            ),
            ErrorKind::Other => format!("{error}, after {call}"),
            _ => self.end(call),
        }
    }

    /// Return the status with which the process ended. It has closed its socket; if it goes on, it is killed.
    fn end(&mut self, call: &str) -> String {
        let _ = self.stream.get_ref().shutdown(Shutdown::Both);
        match self.child.wait() {
            Ok(status) => format!("its process ended ({status}) in {call}"),
            Err(error) => format!("its process ended ({error}) in {call}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
