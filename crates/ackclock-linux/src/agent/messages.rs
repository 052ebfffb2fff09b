//! What is asked and answered: a line of JSON each. After an answer `file`, that file's bytes follow as they are.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::changes::Change;

/// The form of these messages; one that differs is of another version.
pub const FORM: u32 = 2;

/// What the agent is asked.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// What time it is.
    Clock,
    /// What `ip`, `tc` or `ethtool` say.
    #[serde(rename = "look")]
    RunCommands {
        /// Commands, word by word.
        commands: Vec<Vec<String>>,
        /// True if they run in a network that is thrown away.
        #[serde(rename = "apart")]
        isolated: bool,
    },
    /// What stands in files of `/proc` and `/sys`.
    Read {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// How much room there is at a place, in which a file may be written without a trace.
    Room {
        /// A folder, or a file.
        place: PathBuf,
    },
    /// To change something, until the end.
    Change {
        /// In their order.
        changes: Vec<Change>,
    },
    /// To prepare a run.
    #[serde(rename = "order")]
    Prepare {
        /// The order of `ackclock-linux`, without the files.
        #[serde(rename = "order")]
        run_spec: Value,
    },
    /// To begin the run.
    Start {
        /// At this time of the monotonic clock.
        at_ns: i64,
    },
    /// To undo everything and end.
    End,
}

/// What the agent answers.
#[derive(Debug, Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Response<'a> {
    /// First of all.
    Hello {
        /// Of the agent.
        version: &'a str,
        /// Of the messages.
        form: u32,
        /// Whose rights it has; 0: all.
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
        /// What stands in them.
        texts: Vec<Option<String>>,
    },
    /// Of a place.
    Room {
        /// Of its disk; null: nothing can be read or written there.
        free_bytes: Option<u64>,
        /// The length of a file; null: it is a folder.
        file_bytes: Option<u64>,
        /// Why not, in one line.
        why: Option<String>,
    },
    /// What was asked for is so.
    Done,
    /// It is not: why.
    Failed {
        /// In one line.
        why: String,
    },
    /// How far the run is.
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
        /// How many.
        bytes: u64,
    },
    /// Everything is as before.
    Restored {
        /// What could not be undone, in one line each.
        problems: Vec<String>,
    },
}

/// Where answers go; the threads of an agent share it.
#[derive(Clone)]
pub struct ResponseWriter(Arc<Mutex<Box<dyn Write + Send>>>);

impl ResponseWriter {
    /// On standard output.
    pub fn on_stdout() -> ResponseWriter {
        ResponseWriter(Arc::new(Mutex::new(Box::new(io::stdout()))))
    }

    /// Says one, and what follows it.
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

    /// Says one.
    pub fn send(&self, response: &Response) -> io::Result<()> {
        self.send_with_data(response, &[])
    }
}
