//! The agent's own loop: what it is asked, line by line.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;
use std::time::Duration;

use rustix::time::{clock_gettime, ClockId, Timespec};
use serde_json::{json, Value};

use crate::changes::{self, Change, Journal};
use crate::guard::HELD;
use crate::looking;
use crate::messages::{Answer, Answers, Ask, FORM};

/// The file of a run's tables.
const RESULT: &str = "result.bin";

/// An agent at work.
struct Agent {
    folder: PathBuf,
    patience: Duration,
    guard: Guard,
    journal: Journal,
    answers: Answers,
    /// Tells the run that is prepared when it begins.
    run: Option<Sender<i64>>,
}

/// Serves to the end of standard input. What was changed is undone by the guard.
pub fn serve(folder: &Path, patience: Duration) -> io::Result<()> {
    let mut agent = Agent {
        folder: folder.to_owned(),
        patience,
        guard: Guard::start(folder, patience)?,
        journal: Journal::open(folder)?,
        answers: Answers::on_stdout(),
        run: None,
    };
    agent.greet()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        agent.tell_guard()?;
        if line.is_empty() {
            continue; // it only says that somebody is there
        }
        let asked = serde_json::from_str(&line);
        let answer = match asked {
            Ok(Ask::End) => return agent.end(),
            Ok(asked) => agent.answer(asked),
            Err(error) => Err(format!(
                "it was asked something that it does not know: {error}"
            )),
        };
        if let Err(why) = answer {
            agent.answers.say(&Answer::Failed { why })?;
        }
    }
    Ok(())
}

/// The guard as the agent knows it.
struct Guard {
    process: Child,
    said: BufReader<ChildStdout>,
    /// True if another agent's guard has this host.
    taken: bool,
}

impl Guard {
    /// Starts it; it hears that the agent lives as long as it does.
    fn start(folder: &Path, patience: Duration) -> io::Result<Guard> {
        let mut process = Command::new("/proc/self/exe")
            .arg("guard")
            .arg(folder)
            .arg(std::process::id().to_string())
            .arg(patience.as_secs().to_string())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pipe = process.stdout.take();
        let mut said = BufReader::new(pipe.ok_or_else(|| io::Error::other("the guard is mute"))?);
        let mut first = String::new();
        said.read_line(&mut first)?;
        let taken = first.trim_end() != HELD;
        Ok(Guard {
            process,
            said,
            taken,
        })
    }

    /// Has it undo everything: what could not be undone, in one line each; an error if it is gone.
    fn end(mut self) -> io::Result<Vec<String>> {
        drop(self.process.stdin.take());
        let mut said = String::new();
        self.said.read_to_string(&mut said)?;
        if !self.process.wait()?.success() {
            return Err(io::Error::other("the guard is gone"));
        }
        Ok(said.lines().map(str::to_owned).collect())
    }
}

impl Agent {
    fn greet(&self) -> io::Result<()> {
        let uname = rustix::system::uname();
        self.answers.say(&Answer::Hello {
            version: env!("CARGO_PKG_VERSION"),
            form: FORM,
            user: rustix::process::geteuid().as_raw(),
            release: &uname.release().to_string_lossy(),
            machine: &uname.machine().to_string_lossy(),
            taken: self.guard.taken,
        })
    }

    /// Something was heard. A guard that is gone is replaced: nothing was undone.
    fn tell_guard(&mut self) -> io::Result<()> {
        let told = self.guard.process.stdin.as_mut();
        if matches!(told.map(|pipe| pipe.write_all(b".")), Some(Ok(()))) {
            return Ok(());
        }
        self.guard.process.wait()?;
        self.guard = Guard::start(&self.folder, self.patience)?;
        Ok(())
    }

    /// Does what it is asked; an error is told.
    fn answer(&mut self, asked: Ask) -> Result<(), String> {
        let said = match asked {
            Ask::Clock => self.answers.say(&Answer::Clock {
                monotonic_ns: nanoseconds(clock_gettime(ClockId::Monotonic)),
                real_ns: nanoseconds(clock_gettime(ClockId::Realtime)),
            }),
            Ask::Look { commands, apart } => {
                let said = looking::run_all(commands, apart);
                self.answers.say(&Answer::Looked { said })
            }
            Ask::Read { paths } => {
                let texts = paths.iter().map(|path| looking::read(path)).collect();
                self.answers.say(&Answer::Read { texts })
            }
            Ask::Room { place } => self.answers.say(&room(&place)),
            Ask::Change { changes } => {
                self.change(&changes)?;
                self.done()
            }
            Ask::Order { order } => {
                self.prepare(order)?;
                self.done()
            }
            Ask::Start { at_ns } => {
                self.start(at_ns)?;
                self.done()
            }
            Ask::End => Ok(()),
        };
        said.map_err(|error| error.to_string())
    }

    fn done(&self) -> io::Result<()> {
        self.answers.say(&Answer::Done)
    }

    fn change(&mut self, changes: &[Change]) -> Result<(), String> {
        changes
            .iter()
            .try_for_each(|change| self.journal.make(change))
    }

    /// The order's files are in the agent's own folder.
    fn prepare(&mut self, mut order: Value) -> Result<(), String> {
        let fields = order.as_object_mut().ok_or("order: it is no table")?;
        check_changes(fields.get("changes"))?;
        fields.insert("result".to_owned(), json!(self.folder.join(RESULT)));
        let captures = fields
            .get("captures")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        let captures: Vec<PathBuf> = (0..captures)
            .map(|number| self.folder.join(format!("{number}.pcap")))
            .collect();
        fields.insert("captures".to_owned(), json!(captures));
        fields.insert("setup".to_owned(), json!([]));
        let answers = self.answers.clone();
        let files = [vec![self.folder.join(RESULT)], captures].concat();
        let (starter, begun) = channel();
        let (ready, is_ready) = channel();
        thread::spawn(move || {
            let done = run(&order.to_string(), &answers, &ready, &begun);
            if let Some(done) = done.transpose() {
                // Whoever asked may be gone: then this ends soon.
                let _ = tell_result(done, &files, &answers);
            }
        });
        is_ready.recv().map_err(|_| "a thread has failed")??;
        self.run = Some(starter);
        Ok(())
    }

    /// Begins the prepared run.
    fn start(&mut self, at_ns: i64) -> Result<(), String> {
        let run = self.run.take().ok_or("there is no order")?;
        if nanoseconds(clock_gettime(ClockId::Monotonic)) >= at_ns {
            return Err("its beginning had passed when it was told".to_owned());
        }
        run.send(at_ns)
            .map_err(|_| "a thread has failed".to_owned())
    }

    /// Has the guard undo everything, and says what is left.
    fn end(self) -> io::Result<()> {
        let problems = self.guard.end().unwrap_or_else(|_| {
            let mut problems = changes::undo_all(&self.folder);
            let removed = fs::remove_dir_all(&self.folder);
            problems.extend(
                removed
                    .err()
                    .map(|error| format!("{}: {error}", self.folder.display())),
            );
            problems
        });
        self.answers.say(&Answer::Restored { problems })
    }
}

/// Prepares a run and says so, waits until it is to begin, and carries it out; nothing if it never begins.
fn run(
    order: &str,
    answers: &Answers,
    ready: &Sender<Result<(), String>>,
    begun: &Receiver<i64>,
) -> Result<Option<()>, String> {
    let heard = answers.clone();
    let tell = move |share| {
        // Whoever asked may be gone: then this ends soon.
        let _ = heard.say(&Answer::Progress { share });
    };
    match ackclock_linux::prepare(order, Box::new(tell)) {
        Err(error) => {
            // As above.
            let _ = ready.send(Err(error.to_string()));
            Ok(None)
        }
        Ok(prepared) => {
            let _ = ready.send(Ok(()));
            let Ok(at_ns) = begun.recv() else {
                return Ok(None);
            };
            let done = prepared.run(Some(at_ns));
            done.map(Some).map_err(|error| error.to_string())
        }
    }
}

/// Hands a run's tables and captures over, or says why there are none.
fn tell_result(done: Result<(), String>, files: &[PathBuf], answers: &Answers) -> io::Result<()> {
    if let Err(why) = done {
        return answers.say(&Answer::Failed { why });
    }
    // A capture that is no business of this host's is not there.
    for file in files.iter().filter(|file| file.exists()) {
        match fs::read(file) {
            Ok(bytes) => {
                let name = &file.file_name().unwrap_or_default().to_string_lossy();
                let length = bytes.len() as u64;
                answers.say_with(
                    &Answer::File {
                        name,
                        bytes: length,
                    },
                    &bytes,
                )?;
            }
            Err(error) => {
                let why = error.to_string();
                return answers.say(&Answer::Failed { why });
            }
        }
    }
    answers.say(&Answer::Over)
}

/// The network changes during a run by `tc` alone: what made it, and undoes it, is in the journal.
fn check_changes(changes: Option<&Value>) -> Result<(), String> {
    let changes = changes.and_then(Value::as_array).into_iter().flatten();
    let mut commands = changes
        .filter_map(|change| change.get("commands")?.as_array())
        .flatten();
    match commands.find(|line| !line.as_str().is_some_and(|line| line.starts_with("tc "))) {
        Some(line) => Err(format!("{line} is no command of tc's")),
        None => Ok(()),
    }
}

/// What there is room for at a place.
fn room(place: &Path) -> Answer<'static> {
    match ackclock_linux::store::room(place) {
        Ok(room) => Answer::Room {
            free_bytes: Some(room.free_bytes),
            file_bytes: room.file_bytes,
            why: None,
        },
        Err(error) => Answer::Room {
            free_bytes: None,
            file_bytes: None,
            why: Some(error.to_string()),
        },
    }
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_changes_the_network_by_tc_alone() {
        let changes =
            |line: &str| json!([{"at_s": 1.0, "commands": ["tc class change dev x", line]}]);
        assert_eq!(check_changes(Some(&changes("tc qdisc show"))), Ok(()));
        let refused = check_changes(Some(&changes("rm -r /")));
        assert_eq!(refused, Err("\"rm -r /\" is no command of tc's".to_owned()));
    }
}
