//! Namespaces by their names.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};

use crate::error::Tried;
use crate::Error;

/// The folder in which `ip netns` keeps its namespaces.
const FOLDER: &str = "/run/netns";

/// The counters of the namespace where the thread is.
const COUNTERS: &str = "/proc/thread-self/net/netstat";

/// The network namespaces of a run. A socket belongs to the one in which it was made; the thread moves between them.
#[derive(Debug)]
pub struct Namespaces {
    home: File,
    /// The name under which home is a host.
    own: Option<String>,
    open: BTreeMap<String, File>,
    /// The thread's current namespace; empty: the initial one.
    current: String,
}

impl Namespaces {
    /// The thread is at home, which may have the name of a host.
    pub fn new(own: Option<&str>) -> Result<Namespaces, Error> {
        Ok(Namespaces {
            own: own.map(str::to_owned),
            home: open("/proc/thread-self/ns/net".as_ref())?,
            open: BTreeMap::new(),
            current: String::new(),
        })
    }

    /// Move the thread into a namespace; the empty name is home.
    pub fn enter(&mut self, name: &str) -> Result<(), Error> {
        let name = if self.own.as_deref() == Some(name) {
            ""
        } else {
            name
        };
        if name == self.current {
            return Ok(());
        }
        let target = if name.is_empty() {
            &self.home
        } else {
            if !self.open.contains_key(name) {
                let file = open(&Path::new(FOLDER).join(name))?;
                self.open.insert(name.to_owned(), file);
            }
            &self.open[name]
        };
        move_into_link_name_space(target.as_fd(), Some(LinkNameSpaceType::Network))
            .tried(|| format!("namespace {name}"))?;
        name.clone_into(&mut self.current);
        Ok(())
    }

    /// Return how often TCP memory pressure occurred, as counted in the visited namespaces.
    pub fn memory_pressures(&mut self) -> Result<u64, Error> {
        let names: Vec<String> = self.open.keys().cloned().collect();
        let mut count = 0;
        for name in names {
            self.enter(&name)?;
            let text = fs::read_to_string(COUNTERS).tried(|| COUNTERS.to_owned())?;
            count += counter(&text, "TcpExt:", "TCPMemoryPressures").unwrap_or(0);
        }
        self.enter("")?;
        Ok(count)
    }
}

/// A counter of the kernel's: a line of names, and one of numbers, begin with its group.
fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut found = names.split(' ').zip(numbers.split(' '));
    found.find(|&(known, _)| known == name)?.1.parse().ok()
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).tried(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "TcpExt: SyncookiesSent TCPMemoryPressures TCPMemoryPressuresChrono\nTcpExt: 0 3 120\n\
        IpExt: InNoRoutes TCPMemoryPressures\nIpExt: 5 6\n";

    #[test]
    fn a_counter_is_the_number_below_its_name() {
        assert_eq!(counter(TEXT, "TcpExt:", "TCPMemoryPressures"), Some(3));
        assert_eq!(counter(TEXT, "IpExt:", "InNoRoutes"), Some(5));
        assert_eq!(counter(TEXT, "TcpExt:", "InNoRoutes"), None);
        assert_eq!(counter("TcpExt: one\n", "TcpExt:", "one"), None);
    }
}
