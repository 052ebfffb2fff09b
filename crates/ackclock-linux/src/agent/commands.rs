//! Looks at the host, and changes nothing.

use std::fs;
use std::path::{Component, Path};
use std::process::{Command, Stdio};
use std::thread;

use crate::sys;

/// The programs that the agent runs, all of them.
pub const PROGRAMS: [&str; 3] = ["ip", "tc", "ethtool"];
/// The `PATH` of these programs.
const SYSTEM: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";
/// Most of a file.
const MAX_BYTES: usize = 1 << 20;

/// Status (none: it could not be run), standard output and error.
pub type CommandOutput = (Option<i32>, String, String);

/// Run commands one after the other; `isolated`, in a network that ends with them.
pub fn run_all(commands: Vec<Vec<String>>, isolated: bool) -> Vec<CommandOutput> {
    if !isolated {
        return commands.iter().map(|arguments| run(arguments)).collect();
    }
    let failed = |why: &str| vec![(None, String::new(), why.to_owned())];
    // A thread of its own, for the network is the thread's.
    let isolated_thread = thread::spawn(move || match sys::own_network() {
        Ok(()) => commands.iter().map(|arguments| run(arguments)).collect(),
        Err(error) => failed(&error.to_string()),
    });
    isolated_thread
        .join()
        .unwrap_or_else(|_| failed("a thread has failed"))
}

/// Run one of [`PROGRAMS`].
pub fn run(arguments: &[String]) -> CommandOutput {
    let rejected = |why: String| (None, String::new(), why);
    let Some((name, rest)) = arguments.split_first() else {
        return rejected("no command".to_owned());
    };
    if !PROGRAMS.contains(&name.as_str()) {
        return rejected(format!("{name:?} is no program of the agent's"));
    }
    let send_done = Command::new(name)
        .args(rest)
        .env_clear()
        .env("PATH", SYSTEM)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output();
    match send_done {
        Ok(send_done) => (
            send_done.status.code(),
            String::from_utf8_lossy(&send_done.stdout).into_owned(),
            String::from_utf8_lossy(&send_done.stderr).trim().to_owned(),
        ),
        Err(error) => rejected(format!("{name}: {error}")),
    }
}

/// Read a file of `/proc` or `/sys`.
pub fn read(path: &Path) -> Option<String> {
    let is_kernel_file = path.starts_with("/proc") || path.starts_with("/sys");
    let is_plain = !path.components().any(|part| part == Component::ParentDir);
    let text = fs::read(path).ok().filter(|_| is_kernel_file && is_plain)?;
    Some(String::from_utf8_lossy(&text[..text.len().min(MAX_BYTES)]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_programs_run() {
        let (status, _, why) = run(&["sh".to_owned(), "-c".to_owned(), "true".to_owned()]);
        assert_eq!(status, None);
        assert_eq!(why, "\"sh\" is no program of the agent's");
    }

    #[test]
    fn only_the_kernels_files_are_read() {
        assert!(read(Path::new("/proc/sys/kernel/ostype")).is_some());
        assert!(read(Path::new("/etc/passwd")).is_none());
        assert!(read(Path::new("/proc/../etc/passwd")).is_none());
    }
}
