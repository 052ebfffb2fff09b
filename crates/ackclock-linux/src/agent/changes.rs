//! Changes to a host, with a journal to undo them.
//!
//! The journal is a file with a line for each change, written before it is made, and one when it is. It is undone from
//! its end; of what was begun and perhaps not made, an undoing may fail.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::commands;

/// A requested change.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Change {
    /// A setting of the network.
    Sysctl {
        /// Its name, with dots.
        sysctl: String,
        /// Its new value.
        value: String,
    },
    /// A command.
    Command {
        /// Its words.
        run: Vec<String>,
        /// The words of what undoes it; null: what undoes an earlier one.
        undo: Option<Vec<String>>,
    },
}

/// The inverse of a change.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Undo {
    /// A file has this content again.
    File(PathBuf, String),
    /// A command.
    Command(Vec<String>),
}

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
enum Line {
    Begun(Undo),
    Made,
}

/// The journal of a folder.
pub struct Journal {
    file: File,
}

impl Journal {
    /// Open the journal of a folder to append to it.
    pub fn open(folder: &Path) -> io::Result<Journal> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(journal_path(folder))?;
        Ok(Journal { file })
    }

    /// Apply a change. Errors give the reason in one line.
    pub fn make(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::Sysctl { sysctl, value } => self.set(sysctl, value),
            Change::Command { run, undo } => {
                if let Some(undo) = undo {
                    self.append(&Line::Begun(Undo::Command(undo.clone())))?;
                }
                command(run)?;
                undo.as_ref().map_or(Ok(()), |_| self.append(&Line::Made))
            }
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let path =
            sysctl_path(name).ok_or_else(|| format!("{name:?} is no setting of the network"))?;
        let describe = |error: io::Error| format!("{name}: {error}");
        let before = fs::read_to_string(&path).map_err(describe)?;
        if before.split_whitespace().eq(value.split_whitespace()) {
            return Ok(());
        }
        self.append(&Line::Begun(Undo::File(path.clone(), before)))?;
        fs::write(&path, value).map_err(describe)?;
        self.append(&Line::Made)
    }

    fn append(&mut self, line: &Line) -> Result<(), String> {
        let written = serde_json::to_vec(line)
            .map_err(io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                self.file.write_all(&line)
            });
        written.map_err(|error| format!("the journal: {error}"))
    }
}

/// Undo what a folder's journal has; what could not be undone, in one line each.
pub fn undo_all(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(journal_path(folder)).unwrap_or_default();
    let mut problems = Vec::new();
    let mut was_made = false;
    for line in text.lines().rev() {
        match serde_json::from_str(line) {
            Ok(Line::Made) => was_made = true,
            Ok(Line::Begun(undo)) => {
                let undone = undo_one(&undo);
                problems.extend(undone.err().filter(|_| was_made));
                was_made = false;
            }
            // The last may be cut off: its change was not made.
            Err(_) => was_made = false,
        }
    }
    problems
}

fn undo_one(undo: &Undo) -> Result<(), String> {
    match undo {
        Undo::File(path, before) => {
            fs::write(path, before).map_err(|error| format!("{}: {error}", path.display()))
        }
        Undo::Command(arguments) => command(arguments),
    }
}

fn command(arguments: &[String]) -> Result<(), String> {
    match commands::run(arguments) {
        (Some(0), ..) => Ok(()),
        (_, _, outputs) => {
            let outputs = outputs
                .lines()
                .next()
                .unwrap_or("failed without an error message")
                .to_owned();
            Err(format!("{}: {outputs}", arguments.join(" ")))
        }
    }
}

/// The file of a setting of the network, if its name is one.
fn sysctl_path(name: &str) -> Option<PathBuf> {
    let parts: Vec<&str> = name.split('.').collect();
    let is_plain = |part: &&str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let is_one = parts.len() > 2 && parts[0] == "net" && parts.iter().all(is_plain);
    is_one.then(|| Path::new("/proc/sys").join(parts.join("/")))
}

fn journal_path(folder: &Path) -> PathBuf {
    folder.join("journal")
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    /// A folder of this test's own.
    fn folder(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("ackclock-agent-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn changes_are_undone_in_reverse() {
        let folder = folder("undone");
        let file = folder.join("value");
        fs::write(&file, "third").expect("written");
        let mut journal = Journal::open(&folder).expect("a journal");
        for before in ["first", "second"] {
            let undo = Undo::File(file.clone(), before.to_owned());
            journal.append(&Line::Begun(undo)).expect("noted");
            journal.append(&Line::Made).expect("noted");
        }
        assert_eq!(undo_all(&folder), Vec::<String>::new());
        assert_eq!(fs::read_to_string(&file).expect("read"), "first");
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn only_completed_changes_that_cannot_be_undone_are_problems() {
        let folder = folder("stays");
        let mut journal = Journal::open(&folder).expect("a journal");
        let gone = || Undo::File("/no/such/file".into(), String::new());
        journal.append(&Line::Begun(gone())).expect("noted");
        assert_eq!(undo_all(&folder), Vec::<String>::new());
        journal.append(&Line::Made).expect("noted");
        assert_eq!(undo_all(&folder).len(), 1);
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_setting_is_one_of_the_network() {
        assert_eq!(
            sysctl_path("net.ipv4.tcp_sack"),
            Some("/proc/sys/net/ipv4/tcp_sack".into())
        );
        for name in [
            "kernel.hostname",
            "net.ipv4..x",
            "net.ipv4/../x",
            "net",
            "net.ipv4.",
        ] {
            assert_eq!(sysctl_path(name), None, "{name}");
        }
    }
}
