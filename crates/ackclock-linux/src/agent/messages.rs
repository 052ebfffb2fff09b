//! Requests and responses of the agent: a line of JSON each. After a response `file` the raw bytes of that file follow.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::changes::Change;

/// The form of these messages; one that differs is of another version.
pub const FORM: u32 = 2;

/// A request to the agent.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Read the clocks.
    Clock,
    /// Run `ip`, `tc` or `ethtool` and return their output.
    #[serde(rename = "look")]
    RunCommands {
        /// Commands, word by word.
        commands: Vec<Vec<String>>,
        /// True if they run in a temporary network namespace.
        #[serde(rename = "apart")]
        isolated: bool,
    },
    /// Read files of `/proc` and `/sys`.
    Read {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// Report the free space at a path at which an unnamed file may be written.
    Room {
        /// A folder, or a file.
        place: PathBuf,
    },
    /// Change the host, until the end.
    Change {
        /// In their order.
        changes: Vec<Change>,
    },
    /// Prepare a run.
    #[serde(rename = "order")]
    Prepare {
        /// The run spec of `ackclock-linux`, without the files.
        #[serde(rename = "order")]
        run_spec: Value,
    },
    /// Start the run.
    Start {
        /// At this time of the monotonic clock.
        at_ns: i64,
    },
    /// Undo all changes and end.
    End,
}

/// A response of the agent.
#[derive(Debug, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Response<'a> {
    /// First of all.
    Hello {
        /// The agent's version.
        version: &'a str,
        /// The version of the message format.
        form: u32,
        /// The effective user; 0: root.
        user: u32,
        /// The machine's kernel.
        release: &'a str,
        /// The machine's processor.
        machine: &'a str,
        /// True if another agent has this host.
        taken: bool,
    },
    /// Both clocks.
    Clock {
        /// Since some time in the past.
        monotonic_ns: i64,
        /// Since 1970.
        real_ns: i64,
    },
    /// For each command.
    #[serde(rename = "looked")]
    Outputs {
        /// Status (none: it could not be run), standard output and error.
        #[serde(rename = "said")]
        outputs: Vec<(Option<i32>, String, String)>,
    },
    /// For each file; null: it cannot be read.
    Read {
        /// Their contents.
        texts: Vec<Option<String>>,
    },
    /// The free space at a path.
    Room {
        /// The free space of its disk; null: the path cannot be read or written.
        free_bytes: Option<u64>,
        /// The length of a file; null: it is a folder.
        file_bytes: Option<u64>,
        /// Why not, in one line.
        why: Option<String>,
    },
    /// The request succeeded.
    Done,
    /// The request failed.
    Failed {
        /// In one line.
        why: String,
    },
    /// The progress of the run.
    Progress {
        /// From 0 to 1.
        share: f64,
    },
    /// The run is over.
    Over,
    /// A file's bytes follow this line.
    File {
        /// Its name.
        name: &'a str,
        /// The number of bytes.
        bytes: u64,
    },
    /// Everything is as before.
    Restored {
        /// The changes that could not be undone, one line each.
        problems: Vec<String>,
    },
}

/// The writer of responses, shared by the agent's threads.
#[derive(Clone)]
pub struct ResponseWriter(Arc<Mutex<Box<dyn Write + Send>>>);

impl ResponseWriter {
    /// On standard output.
    pub fn on_stdout() -> ResponseWriter {
        ResponseWriter(Arc::new(Mutex::new(Box::new(io::stdout()))))
    }

    /// Report one, and what follows it.
    pub fn send_with_data(&self, response: &Response, bytes: &[u8]) -> io::Result<()> {
        let mut line = serde_json::to_vec(response)?;
        line.push(b'\n');
        let mut to = self
            .0
            .lock()
            .map_err(|_| io::Error::other("a thread has failed"))?;
        to.write_all(&line)?;
        to.write_all(bytes)?;
        to.flush()
    }

    /// Report one.
    pub fn send(&self, response: &Response) -> io::Result<()> {
        self.send_with_data(response, &[])
    }
}
