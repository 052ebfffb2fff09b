//! The network by ordinary commands.
//!
//! Starting a program is what costs in a guest. So consecutive lines of the same tool and namespace go to one
//! `ip -batch` or `tc -batch`, sysctls are written and modules loaded without a program, and a program in a namespace
//! needs no `ip netns exec`.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use crate::error::Tried;
use crate::namespaces::Namespaces;
use crate::sys::load_module;
use crate::Error;

/// One step of the setup.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    /// Lines that one `ip` or `tc` takes as a batch.
    Batch {
        tool: &'a str,
        namespace: Option<&'a str>,
        lines: Vec<&'a str>,
        /// The lines as the script has them.
        given: Vec<&'a str>,
    },
    /// Values of the kernel's to be written.
    Sysctl {
        namespace: &'a str,
        values: Vec<(&'a str, &'a str)>,
        given: &'a str,
    },
    /// A module of the kernel's, and its parameters.
    Module {
        path: &'a str,
        parameters: &'a str,
        given: &'a str,
    },
    /// Any other program.
    Program {
        namespace: &'a str,
        command: &'a str,
        given: &'a str,
    },
}

/// Run the lines of a script.
///
/// # Errors
/// The first command that failed, and its output.
pub fn run(lines: &[String], namespaces: &mut Namespaces) -> Result<(), Error> {
    for step in steps(lines) {
        match step {
            Step::Batch {
                tool,
                namespace,
                lines,
                given,
            } => batch(tool, namespace, &lines, &given)?,
            Step::Sysctl {
                namespace,
                values,
                given,
            } => {
                namespaces.enter(namespace)?;
                let written = values
                    .iter()
                    .try_for_each(|(name, value)| write(name, value));
                namespaces.enter("")?;
                written.map_err(|output| failed(given, &output))?;
            }
            Step::Module {
                path,
                parameters,
                given,
            } => File::open(path)
                .and_then(|file| load_module(file.as_fd(), parameters))
                .map_err(|error| failed(given, &error.to_string()))?,
            Step::Program {
                namespace,
                command,
                given,
            } => {
                namespaces.enter(namespace)?;
                let done = program(command, given);
                namespaces.enter("")?;
                done?;
            }
        }
    }
    Ok(())
}

fn steps(lines: &[String]) -> Vec<Step<'_>> {
    let mut steps: Vec<Step> = Vec::new();
    for given in lines.iter().map(|line| line.trim()) {
        let next = step(given);
        match (steps.last_mut(), next) {
            (
                Some(Step::Batch {
                    tool,
                    namespace,
                    lines,
                    given,
                }),
                Step::Batch {
                    tool: same,
                    namespace: place,
                    lines: more,
                    given: as_given,
                },
            ) if *tool == same && *namespace == place => {
                lines.extend(more);
                given.extend(as_given);
            }
            (_, next) => steps.push(next),
        }
    }
    steps
}

/// A line as a step of its own.
fn step(given: &str) -> Step<'_> {
    let program = || {
        let (namespace, command) = placed(given);
        Step::Program {
            namespace,
            command,
            given,
        }
    };
    sysctl(given)
        .or_else(|| isolated(given))
        .or_else(|| module(given))
        .unwrap_or_else(program)
}

/// Split a line into its namespace and command: `ip netns exec NAME COMMAND` is a command in a namespace.
fn placed(given: &str) -> (&str, &str) {
    given
        .strip_prefix("ip netns exec ")
        .and_then(|rest| rest.split_once(' '))
        .unwrap_or(("", given))
}

/// A line `insmod PATH [name=value …]`.
fn module(given: &str) -> Option<Step<'_>> {
    let rest = given.strip_prefix("insmod ")?;
    let (path, parameters) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(Step::Module {
        path,
        parameters,
        given,
    })
}

/// A line of `ip` or `tc`; not one that runs another program.
fn isolated(given: &str) -> Option<Step<'_>> {
    let (tool, rest) = given.split_once(' ')?;
    if !matches!(tool, "ip" | "tc") || rest.starts_with("netns exec") {
        return None;
    }
    let (namespace, line) = match rest.strip_prefix("-n ") {
        Some(rest) => rest
            .split_once(' ')
            .map(|(namespace, line)| (Some(namespace), line))?,
        None => (None, rest),
    };
    // Other options must come first on a command line of their own.
    (!line.starts_with('-')).then(|| Step::Batch {
        tool,
        namespace,
        lines: vec![line],
        given: vec![given],
    })
}

/// A line `[ip netns exec NAME] sysctl -qw name=value …`.
fn sysctl(given: &str) -> Option<Step<'_>> {
    let (namespace, command) = placed(given);
    let assignments = command
        .strip_prefix("sysctl -qw ")
        .or_else(|| command.strip_prefix("sysctl -w "))?;
    // A quoted value is one assignment with spaces in it.
    let values = assignments
        .split(['\'', '"'])
        .enumerate()
        .flat_map(|(part, text)| {
            let quoted = part % 2 == 1;
            let words: Vec<&str> = if quoted {
                vec![text]
            } else {
                text.split_whitespace().collect()
            };
            words
        });
    let values = values
        .map(|assignment| assignment.split_once('='))
        .collect::<Option<_>>()?;
    Some(Step::Sysctl {
        namespace,
        values,
        given,
    })
}

fn write(name: &str, value: &str) -> Result<(), String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::write(&path, value).map_err(|error| error.to_string())
}

fn batch(tool: &str, namespace: Option<&str>, lines: &[&str], given: &[&str]) -> Result<(), Error> {
    let mut command = Command::new(tool);
    if let Some(namespace) = namespace {
        command.args(["-n", namespace]);
    }
    command.args(["-batch", "-"]);
    let output = output(command, &lines.join("\n"), tool)?;
    let Some(output) = output else { return Ok(()) };
    let culprit = batch_line(&output).and_then(|line| given.get(line - 1));
    Err(failed(culprit.unwrap_or(&given[0]), first_line(&output)))
}

/// The line of a batch that failed, from 1: the tools end with `Command failed -:3`.
fn batch_line(output: &str) -> Option<usize> {
    let (_, number) = output.rsplit_once("Command failed -:")?;
    let line = number.trim().parse().ok()?;
    (line > 0).then_some(line)
}

fn program(command: &str, given: &str) -> Result<(), Error> {
    let mut words = command.split_whitespace();
    let Some(name) = words.next() else {
        return Ok(());
    };
    let mut command = Command::new(name);
    command.args(words);
    match output(command, "", given)? {
        None => Ok(()),
        Some(output) => Err(failed(given, first_line(&output))),
    }
}

/// Run a program; return its output if it failed.
fn output(mut command: Command, input: &str, given: &str) -> Result<Option<String>, Error> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().tried(|| given.to_owned())?;
    if let Some(mut pipe) = child.stdin.take() {
        // A tool that exits early reports the reason itself.
        let _ = writeln!(pipe, "{input}");
    }
    let done = child.wait_with_output().tried(|| given.to_owned())?;
    let output = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Ok((!done.status.success()).then_some(output))
}

fn first_line(output: &str) -> &str {
    output
        .lines()
        .next()
        .unwrap_or("failed without an error message")
}

fn failed(command: &str, output: &str) -> Error {
    Error::Command {
        command: command.to_owned(),
        output: output.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(script: &str) -> Vec<String> {
        script.lines().map(str::to_owned).collect()
    }

    #[test]
    fn consecutive_lines_of_a_tool_and_namespace_are_one_batch() {
        let script = lines("ip netns add a\nip netns add b\nip -n a link set lo up\ntc -n a qdisc add dev x\nip -n a route add y");
        let found = steps(&script);
        let batch = |tool, namespace, lines: &[&'static str], given: &[&'static str]| Step::Batch {
            tool,
            namespace,
            lines: lines.to_vec(),
            given: given.to_vec(),
        };
        assert_eq!(
            found,
            [
                batch(
                    "ip",
                    None,
                    &["netns add a", "netns add b"],
                    &["ip netns add a", "ip netns add b"]
                ),
                batch(
                    "ip",
                    Some("a"),
                    &["link set lo up"],
                    &["ip -n a link set lo up"]
                ),
                batch(
                    "tc",
                    Some("a"),
                    &["qdisc add dev x"],
                    &["tc -n a qdisc add dev x"]
                ),
                batch("ip", Some("a"), &["route add y"], &["ip -n a route add y"]),
            ]
        );
    }

    #[test]
    fn sysctls_are_written_and_other_programs_run() {
        let script = lines("ip netns exec tx0 sysctl -qw net.ipv4.tcp_sack=1 net.ipv4.tcp_ecn=0\nip netns exec tx0 ethtool -K lo tso off\nsysctl -qw 'net.ipv4.tcp_rmem=1 2 3'\ninsmod /x/y.ko a=1 b=2\ninsmod /z.ko");
        let found = steps(&script);
        assert_eq!(
            found,
            [
                Step::Sysctl {
                    namespace: "tx0",
                    values: vec![("net.ipv4.tcp_sack", "1"), ("net.ipv4.tcp_ecn", "0")],
                    given: &script[0],
                },
                Step::Program {
                    namespace: "tx0",
                    command: "ethtool -K lo tso off",
                    given: &script[1],
                },
                Step::Sysctl {
                    namespace: "",
                    values: vec![("net.ipv4.tcp_rmem", "1 2 3")],
                    given: &script[2],
                },
                Step::Module {
                    path: "/x/y.ko",
                    parameters: "a=1 b=2",
                    given: &script[3],
                },
                Step::Module {
                    path: "/z.ko",
                    parameters: "",
                    given: &script[4],
                },
            ]
        );
    }

    #[test]
    fn the_failed_line_of_a_batch_is_reported() {
        assert_eq!(
            batch_line("Error: no such device\nCommand failed -:3"),
            Some(3)
        );
        assert_eq!(batch_line("Command failed -:0"), None);
        assert_eq!(batch_line("no news"), None);
    }

    #[test]
    fn an_unknown_program_is_named() {
        let mut namespaces = Namespaces::new(None).expect("this thread has a namespace");
        let script = lines("no-such-tool at all");
        let error = run(&script, &mut namespaces).expect_err("there is no such tool");
        assert!(
            error.to_string().starts_with("no-such-tool at all: "),
            "{error}"
        );
    }

    #[test]
    fn a_sysctl_that_is_none_names_its_line() {
        let mut namespaces = Namespaces::new(None).expect("this thread has a namespace");
        let script = lines("sysctl -qw no.such.value=1");
        let error = run(&script, &mut namespaces).expect_err("there is no such value");
        assert!(
            error
                .to_string()
                .starts_with("sysctl -qw no.such.value=1: "),
            "{error}"
        );
    }
}
