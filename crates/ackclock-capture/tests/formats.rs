//! Every file of a folder of captures is read, or refused with a reason, within bounds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ackclock_capture::files::Capture;

/// What a file may take, as small as all of them are.
const LONGEST: Duration = Duration::from_secs(10);

/// The files under a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_none_or(|end| end != "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Reads a file; gives its segments and packets, and its reason.
fn read(path: &Path) -> (u64, u64, Option<String>, bool) {
    let start = Instant::now();
    let mut capture = Capture::open(&[path]);
    let segments = capture.by_ref().count() as u64;
    assert!(start.elapsed() < LONGEST, "{} took too long", path.display());
    let file = &capture.files()[0];
    assert_eq!(segments, file.counts().segments);
    let reason = file.reason().map(ToString::to_string);
    (segments, file.counts().packets, reason, file.refused())
}

/// All that the project was ever handed, where it is there: `cargo test -p ackclock-capture --test formats -- --ignored
/// --nocapture` prints what is refused or breaks off, and why.
#[test]
#[ignore = "reads captures that are beside the repository"]
fn everything_is_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let folder = std::env::var_os("ACKCLOCK_CAPTURES").map_or(folder, PathBuf::from);
    if !folder.exists() {
        return;
    }
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut whole, mut in_part, mut refused) = (0, 0, 0);
    for path in files(&folder) {
        let (segments, packets, reason, nothing) = read(&path);
        let Some(reason) = reason else {
            whole += 1;
            continue;
        };
        *if nothing { &mut refused } else { &mut in_part } += 1;
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let line = format!("{name}: {packets} packets, {segments} segments");
        reasons.entry(reason).or_default().push(line);
    }
    for (reason, names) in &reasons {
        println!("{reason}\n  {}", names.join("\n  "));
    }
    println!("{whole} read, {in_part} in part, {refused} refused");
}
