//! Namespaces by their names.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};

use crate::error::Tried;
use crate::Error;

/// Where `ip netns` keeps its namespaces.
const FOLDER: &str = "/run/netns";

/// The network namespaces of a run. A socket belongs to the one in which it was made; the thread moves between them.
#[derive(Debug)]
pub struct Namespaces {
    home: File,
    open: BTreeMap<String, File>,
    /// Where the thread is; empty: at home.
    current: String,
}

impl Namespaces {
    /// The thread is at home.
    pub fn new() -> Result<Namespaces, Error> {
        Ok(Namespaces {
            home: open("/proc/thread-self/ns/net".as_ref())?,
            open: BTreeMap::new(),
            current: String::new(),
        })
    }

    /// Moves the thread into a namespace; the empty name is home.
    pub fn enter(&mut self, name: &str) -> Result<(), Error> {
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
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).tried(|| path.display().to_string())
}
