//! Which control flows of known control are said to have used: a line a flow, then a table.
//!
//! `cargo run --release -p ackclock-replay --example which -- CONTROLS FILE…`
//!
//! CONTROLS is JSON: for each control its name, the parameters as in a plan, and whether a mainline kernel has it
//! (`{"cubic": {"parameters": {…}, "deployed": true}, …}`). A FILE is a `.csv.gz` with tshark's fields, named after its
//! control, or a capture of the packet engine at its senders in `CONTROL-*/captures/`. `FITS=1` prints every fit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ackclock_replay::ranking::{rank, verdict, Candidate, UNKNOWN};
use ackclock_replay::series::Series;
use serde_json::{Map, Value};

mod parts;

/// Epochs that a flow must have to be counted.
const LEAST_EPOCHS: usize = 3;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let controls = arguments.next().expect("CONTROLS FILE…");
    let candidates = candidates(Path::new(&controls));
    let mut table = BTreeMap::<(String, String), usize>::new();
    for path in arguments.map(PathBuf::from) {
        let (truth, flows, least) = flows(&path);
        for series in flows.iter().filter(|series| series.epochs() >= least) {
            if std::env::var_os("FITS").is_some() {
                print_fits(&truth, &path, series, &candidates);
                continue;
            }
            let ranked = rank(series, &candidates);
            let said = verdict(&ranked);
            print!(
                "{truth}: {said} ({} epochs, {}):",
                series.epochs(),
                path.display()
            );
            for one in ranked.iter().take(3) {
                print!(" {} {:.3}", one.name, one.probability);
            }
            println!();
            *table.entry((truth.clone(), said.to_owned())).or_default() += 1;
        }
    }
    print_table(&table, &candidates);
}

fn candidates(path: &Path) -> Vec<Candidate> {
    let text = std::fs::read_to_string(path).expect("the controls can be read");
    let controls: Map<String, Value> = serde_json::from_str(&text).expect("they are JSON");
    controls
        .iter()
        .map(|(name, control)| {
            let deployed = control["deployed"].as_bool().unwrap_or(false);
            Candidate::new(name, &control["parameters"], deployed).expect("a control of ours")
        })
        .collect()
}

/// The true control, its flows, and how many epochs they must have.
fn flows(path: &Path) -> (String, Vec<Series>, usize) {
    let named = |path: Option<&Path>| {
        let name = path.and_then(Path::file_name).unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        name.split(['-', '.']).next().unwrap_or_default().to_owned()
    };
    if path.extension().is_some_and(|extension| extension == "gz") {
        return (named(Some(path)), vec![parts::truth::csv(path)], 0);
    }
    let run = path.parent().and_then(Path::parent);
    let flows = parts::truth::captured(path.to_owned());
    (named(run), flows, LEAST_EPOCHS)
}

fn print_fits(truth: &str, path: &Path, series: &Series, candidates: &[Candidate]) {
    println!("F {} {truth} {}", path.display(), series.epochs());
    for candidate in candidates {
        for fitted in candidate.fits(series) {
            let (manner, fit) = (fitted.manner, fitted.fit);
            println!(
                "C {} {:?} {:?} {:.3} {:.2} {}",
                candidate.name(),
                manner.counting,
                manner.origin,
                fit.scale,
                fit.log_likelihood,
                fit.rounds
            );
        }
    }
}

fn print_table(table: &BTreeMap<(String, String), usize>, candidates: &[Candidate]) {
    let ours = |name: &str| candidates.iter().any(|candidate| candidate.name() == name);
    let mut rows = BTreeMap::<&str, Vec<String>>::new();
    let (mut right, mut known, mut refused, mut others) = (0, 0, 0, 0);
    for ((truth, said), count) in table {
        rows.entry(truth)
            .or_default()
            .push(format!("{said} {count}"));
        if ours(truth) {
            known += count;
            right += if truth == said { *count } else { 0 };
        } else {
            others += count;
            refused += if said == UNKNOWN { *count } else { 0 };
        }
    }
    println!("\ntrue: said, flows");
    for (truth, said) in rows {
        println!("{truth}: {}", said.join(", "));
    }
    println!(
        "of those that we have: {right} of {known}; of the others unknown: {refused} of {others}"
    );
}
