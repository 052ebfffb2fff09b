//! The agent's main loop: requests, line by line.

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
use crate::commands;
use crate::guard::NAME_HELD;
use crate::messages::{Request, Response, ResponseWriter, FORM};

/// The file of a run's tables.
const RESULT: &str = "result.bin";

/// An agent at work.
struct Agent {
    folder: PathBuf,
    patience: Duration,
    guard: Guard,
    journal: Journal,
    responses: ResponseWriter,
    /// Tells the run that is prepared when it begins.
    run: Option<Sender<i64>>,
}

/// Serve to the end of standard input. What was changed is undone by the guard.
pub fn serve(folder: &Path, patience: Duration) -> io::Result<()> {
    let mut agent = Agent {
        folder: folder.to_owned(),
        patience,
        guard: Guard::start(folder, patience)?,
        journal: Journal::open(folder)?,
        responses: ResponseWriter::on_stdout(),
        run: None,
    };
    agent.send_hello()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        agent.notify_guard()?;
        if line.is_empty() {
            continue; // it only says that somebody is there
        }
        let request = serde_json::from_str(&line);
        let response = match request {
            Ok(Request::End) => return agent.end(),
            Ok(request) => agent.response(request),
            Err(error) => Err(format!("unknown request: {error}")),
        };
        if let Err(why) = response {
            agent.responses.send(&Response::Failed { why })?;
        }
    }
    Ok(())
}

/// The guard as the agent knows it.
struct Guard {
    process: Child,
    outputs: BufReader<ChildStdout>,
    /// True if another agent's guard has this host.
    taken: bool,
}

impl Guard {
    /// Start the guard, connected to the agent by a pipe that ends with the agent.
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
        let mut outputs =
            BufReader::new(pipe.ok_or_else(|| io::Error::other("the guard is mute"))?);
        let mut first = String::new();
        outputs.read_line(&mut first)?;
        let taken = first.trim_end() != NAME_HELD;
        Ok(Guard {
            process,
            outputs,
            taken,
        })
    }

    /// Have it undo everything: what could not be undone, in one line each; an error if it is gone.
    fn end(mut self) -> io::Result<Vec<String>> {
        drop(self.process.stdin.take());
        let mut outputs = String::new();
        self.outputs.read_to_string(&mut outputs)?;
        if !self.process.wait()?.success() {
            return Err(io::Error::other("the guard is gone"));
        }
        Ok(outputs.lines().map(str::to_owned).collect())
    }
}

impl Agent {
    fn send_hello(&self) -> io::Result<()> {
        let uname = rustix::system::uname();
        self.responses.send(&Response::Hello {
            version: env!("CARGO_PKG_VERSION"),
            form: FORM,
            user: rustix::process::geteuid().as_raw(),
            release: &uname.release().to_string_lossy(),
            machine: &uname.machine().to_string_lossy(),
            taken: self.guard.taken,
        })
    }

    /// Notify the guard of a message. A guard that has exited is replaced: it has undone nothing.
    fn notify_guard(&mut self) -> io::Result<()> {
        let pipe = self.guard.process.stdin.as_mut();
        if matches!(pipe.map(|pipe| pipe.write_all(b".")), Some(Ok(()))) {
            return Ok(());
        }
        self.guard.process.wait()?;
        self.guard = Guard::start(&self.folder, self.patience)?;
        Ok(())
    }

    /// Carry a request out; errors are reported.
    fn response(&mut self, request: Request) -> Result<(), String> {
        let outputs = match request {
            Request::Clock => self.responses.send(&Response::Clock {
                monotonic_ns: nanoseconds(clock_gettime(ClockId::Monotonic)),
                real_ns: nanoseconds(clock_gettime(ClockId::Realtime)),
            }),
            Request::RunCommands { commands, isolated } => {
                let outputs = commands::run_all(commands, isolated);
                self.responses.send(&Response::Outputs { outputs })
            }
            Request::Read { paths } => {
                let texts = paths.iter().map(|path| commands::read(path)).collect();
                self.responses.send(&Response::Read { texts })
            }
            Request::Room { place } => self.responses.send(&room(&place)),
            Request::Change { changes } => {
                self.change(&changes)?;
                self.send_done()
            }
            Request::Prepare { run_spec } => {
                self.prepare(run_spec)?;
                self.send_done()
            }
            Request::Start { at_ns } => {
                self.start(at_ns)?;
                self.send_done()
            }
            Request::End => Ok(()),
        };
        outputs.map_err(|error| error.to_string())
    }

    fn send_done(&self) -> io::Result<()> {
        self.responses.send(&Response::Done)
    }

    fn change(&mut self, changes: &[Change]) -> Result<(), String> {
        changes
            .iter()
            .try_for_each(|change| self.journal.make(change))
    }

    /// Prepare a run; the run spec's files are in the agent's own folder.
    fn prepare(&mut self, mut run_spec: Value) -> Result<(), String> {
        let fields = run_spec.as_object_mut().ok_or("order: it is no table")?;
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
        let responses = self.responses.clone();
        let files = [vec![self.folder.join(RESULT)], captures].concat();
        let (starter, begun) = channel();
        let (ready, is_ready) = channel();
        thread::spawn(move || {
            let outcome = run(&run_spec.to_string(), &responses, &ready, &begun);
            if let Some(outcome) = outcome.transpose() {
                // The peer may be gone; then this process ends soon.
                let _ = send_result(outcome, &files, &responses);
            }
        });
        is_ready.recv().map_err(|_| "a thread has failed")??;
        self.run = Some(starter);
        Ok(())
    }

    /// Begin the prepared run.
    fn start(&mut self, at_ns: i64) -> Result<(), String> {
        let run = self.run.take().ok_or("there is no order")?;
        if nanoseconds(clock_gettime(ClockId::Monotonic)) >= at_ns {
            return Err("its start time had passed when it was received".to_owned());
        }
        run.send(at_ns)
            .map_err(|_| "a thread has failed".to_owned())
    }

    /// Have the guard undo everything, and report what is left.
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
        self.responses.send(&Response::Restored { problems })
    }
}

/// Prepare a run and report so, wait until it is to begin, and carry it out; nothing if it never begins.
fn run(
    run_spec: &str,
    responses: &ResponseWriter,
    ready: &Sender<Result<(), String>>,
    begun: &Receiver<i64>,
) -> Result<Option<()>, String> {
    let responses = responses.clone();
    let progress = move |share| {
        // The peer may be gone; then this process ends soon.
        let _ = responses.send(&Response::Progress { share });
    };
    match ackclock_linux::prepare(run_spec, Box::new(progress)) {
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
            let outcome = prepared.run(Some(at_ns));
            outcome.map(Some).map_err(|error| error.to_string())
        }
    }
}

/// Hand a run's tables and captures over, or report why there are none.
fn send_result(
    outcome: Result<(), String>,
    files: &[PathBuf],
    responses: &ResponseWriter,
) -> io::Result<()> {
    if let Err(why) = outcome {
        return responses.send(&Response::Failed { why });
    }
    // A capture that is no business of this host's is not there.
    for file in files.iter().filter(|file| file.exists()) {
        match fs::read(file) {
            Ok(bytes) => {
                let name = &file.file_name().unwrap_or_default().to_string_lossy();
                let length = bytes.len() as u64;
                responses.send_with_data(
                    &Response::File {
                        name,
                        bytes: length,
                    },
                    &bytes,
                )?;
            }
            Err(error) => {
                let why = error.to_string();
                return responses.send(&Response::Failed { why });
            }
        }
    }
    responses.send(&Response::Over)
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

/// Return the free space at a path as a response.
fn room(place: &Path) -> Response<'static> {
    match ackclock_linux::store::room(place) {
        Ok(room) => Response::Room {
            free_bytes: Some(room.free_bytes),
            file_bytes: room.file_bytes,
            why: None,
        },
        Err(error) => Response::Room {
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
    fn a_run_changes_the_network_only_by_tc() {
        let changes =
            |line: &str| json!([{"at_s": 1.0, "commands": ["tc class change dev x", line]}]);
        assert_eq!(check_changes(Some(&changes("tc qdisc show"))), Ok(()));
        let rejected = check_changes(Some(&changes("rm -r /")));
        assert_eq!(
            rejected,
            Err("\"rm -r /\" is no command of tc's".to_owned())
        );
    }
}
