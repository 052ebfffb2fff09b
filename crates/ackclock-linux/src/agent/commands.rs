//! Programs and files by which a host is described. What a program does is up to its arguments, which the controller
//! gives: it has this user's login anyway.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// The programs that the agent runs, all of them.
pub const PROGRAMS: [&str; 3] = ["ip", "tc", "ethtool"];
/// The `PATH` of these programs.
const SYSTEM: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";
/// The maximum number of bytes read from a file.
const MAX_BYTES: u64 = 1 << 20;

/// Status (none: it could not be run), standard output and error.
pub type CommandOutput = (Option<i32>, String, String);

/// Run commands in sequence; if `isolated`, in a temporary network namespace.
pub fn run_all(commands: Vec<Vec<String>>, isolated: bool) -> Vec<CommandOutput> {
    if !isolated {
        return commands.iter().map(|arguments| run(arguments)).collect();
    }
    let count = commands.len();
    let failed = move |why: &str| vec![(None, String::new(), why.to_owned()); count];
    // A separate thread, since the network namespace is per thread.
    let isolated_thread = thread::spawn(move || match own_network() {
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
    let outcome = Command::new(name)
        .args(rest)
        .env_clear()
        .env("PATH", SYSTEM)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output();
    match outcome {
        Ok(outcome) => (
            outcome.status.code(),
            String::from_utf8_lossy(&outcome.stdout).into_owned(),
            String::from_utf8_lossy(&outcome.stderr).trim().to_owned(),
        ),
        Err(error) => rejected(format!("{name}: {error}")),
    }
}

/// Read a file of `/proc` or `/sys`, and no other that a link there leads to.
pub fn read(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    if !(path.starts_with("/proc") || path.starts_with("/sys")) {
        return None;
    }
    let mut text = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Move the calling thread into a new network namespace, which ends with the thread and its children.
#[allow(unsafe_code)]
fn own_network() -> io::Result<()> {
    // SAFETY: the call takes a number; of the thread it changes the network alone, which shares no memory.
    let code = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
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
        assert!(read(Path::new("/proc/self/root/etc/passwd")).is_none());
    }
}
