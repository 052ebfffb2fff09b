//! Limits of the paths of captures that were taken at the sender, compared with the ground truth in the file names.
//!
//! `cargo run --release -p ackclock-analysis --example limiter -- FILE…`
//!
//! A line a file, and a summary of each half of the files: what was chosen while looking was chosen on the first, to
//! which a file belongs if the FNV hash of its name is even. With `--pool`, the flows of all hosts are one path:
//! captures of `ackclock run`, where each flow has hosts of its own. With `--losses=N`, nothing after the Nth loss is
//! looked at.

use std::env;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path as FilePath;

use ackclock_analysis::path::{limiter, Estimate, Limiter, Path};
use ackclock_analysis::series::Arrival;
use ackclock_pcap::files::Capture;

mod fates;

/// The burst of policers whose files name none, in seconds of their rate: what was measured on one of them.
const UNNAMED_BURST_S: f64 = 0.25;
/// Losses from which a policer can be told.
const MIN_LOSSES: usize = 15;

/// The ground truth in a file's name.
struct Truth {
    policer: bool,
    connections: usize,
    rate_bps: f64,
    depth_bytes: f64,
}

impl Truth {
    fn of(name: &str) -> Option<Self> {
        let number = |key: &str| -> Option<f64> {
            name.split('-')
                .find_map(|part| part.strip_prefix(key)?.parse().ok())
        };
        let policer = number("PCIR=").is_some();
        let rate_bps = number("PCIR=").or_else(|| number("SCIR="))?;
        Some(Self {
            policer,
            connections: 1 + usize::from(name.contains("-CP2=")),
            rate_bps,
            depth_bytes: number("PBC=")
                .or_else(|| number("SBC="))
                .unwrap_or(rate_bps / 8.0 * UNNAMED_BURST_S),
        })
    }
}

/// The results of one half of the files.
#[derive(Default)]
struct Half {
    /// Policers found and looked for, with one connection and with several.
    found: [(usize, usize); 2],
    /// Policers told where there is none, and files without one.
    wrong: (usize, usize),
    rates: Vec<f64>,
    depths: Vec<f64>,
    /// The number of intervals that contain the true value.
    held: [usize; 2],
}

impl Half {
    fn takes(&mut self, truth: &Truth, path: &Path) {
        let told = path.limiter == Limiter::Policer;
        if !truth.policer {
            self.wrong.0 += usize::from(told);
            self.wrong.1 += 1;
            return;
        }
        if path.evidence.losses < MIN_LOSSES {
            return;
        }
        let found = &mut self.found[truth.connections - 1];
        found.0 += usize::from(told);
        found.1 += 1;
        if let (true, Some(rate), Some(depth)) = (told, path.rate_bps, path.depth_bytes) {
            self.rates.push(rate.value / truth.rate_bps);
            self.depths.push(depth.value / truth.depth_bytes);
            self.held[0] += usize::from(rate.low <= truth.rate_bps && truth.rate_bps <= rate.high);
            self.held[1] += usize::from(
                depth.low <= truth.depth_bytes
                    && (truth.depth_bytes <= depth.high || path.is_depth_a_minimum),
            );
        }
    }

    fn summary(&mut self) -> String {
        self.rates.sort_by(f64::total_cmp);
        self.depths.sort_by(f64::total_cmp);
        let at = |of: &[f64], share: f64| {
            of.get((of.len() as f64 * share) as usize)
                .copied()
                .unwrap_or(f64::NAN)
        };
        let [one, several] = self.found;
        let mut text = format!(
            "policers {}/{} with one connection, {}/{} with several; {} of {} others told as policers",
            one.0, one.1, several.0, several.1, self.wrong.0, self.wrong.1
        );
        for (name, ratios, held) in [
            ("rate", &self.rates, self.held[0]),
            ("depth", &self.depths, self.held[1]),
        ] {
            let _ = write!(
                text,
                "; {name}: median ratio {:.4}, nine in ten from {:.4} to {:.4}, in its interval {held}/{}",
                at(ratios, 0.5),
                at(ratios, 0.05),
                at(ratios, 0.95),
                ratios.len()
            );
        }
        text
    }
}

fn main() {
    let named: Vec<String> = env::args().skip(1).collect();
    let pool = named.iter().any(|name| name == "--pool");
    let mut out = std::io::stdout().lock();
    let mut halves = [Half::default(), Half::default()];
    let losses = named
        .iter()
        .find_map(|name| name.strip_prefix("--losses=")?.parse().ok());
    for name in named.iter().filter(|name| !name.starts_with("--")) {
        let mut capture = Capture::open(&[name]);
        let Some(direction) = fates::directions(&mut capture, pool).into_iter().next() else {
            let _ = writeln!(out, "{name}: no TCP");
            continue;
        };
        let arrivals = until_loss(&direction.arrivals, losses.unwrap_or(usize::MAX));
        let path = limiter(arrivals, &direction.rtts);
        let file = FilePath::new(name)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let half = usize::from(fnv(&file) % 2 == 1);
        let truth = Truth::of(&file);
        let _ = writeln!(
            out,
            "{} {} {file}",
            ["tune", "held"][half],
            line(&path, truth.as_ref())
        );
        if let Some(truth) = truth {
            halves[half].takes(&truth, &path);
        }
    }
    for (name, half) in ["tune", "held"].iter().zip(&mut halves) {
        let _ = writeln!(out, "{name}: {}", half.summary());
    }
}

/// Return the arrivals up to the last of `losses` losses.
fn until_loss(arrivals: &[Arrival], losses: usize) -> &[Arrival] {
    let lost = arrivals
        .iter()
        .enumerate()
        .filter(|(_, arrival)| arrival.lost);
    let end = lost
        .map(|(place, _)| place + 1)
        .nth(losses.saturating_sub(1));
    &arrivals[..end.unwrap_or(arrivals.len())]
}

/// One file, with the ratios to what its name says.
fn line(path: &Path, truth: Option<&Truth>) -> String {
    let (rate, depth) = truth.map_or((1.0, 1.0), |truth| (truth.rate_bps, truth.depth_bytes));
    let evidence = &path.evidence;
    let plain = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    format!(
        "{:?} rate {} depth {}{} burst {} losses {} in {} explained {} slopes {} {} delayed {} queue {} steady {} busy {} bucket {}",
        path.limiter,
        ratio(path.rate_bps, rate),
        ratio(path.depth_bytes, depth),
        if path.is_depth_a_minimum { "+" } else { "" },
        ratio(path.burst_bytes, 1.0),
        evidence.losses,
        evidence.episodes,
        plain(evidence.explained),
        ratio(evidence.slope, 1.0),
        ratio(evidence.slope_when_full, 1.0),
        plain(evidence.delayed),
        ratio(evidence.queue_bps, rate),
        plain(evidence.steady),
        plain(evidence.busy),
        ratio(evidence.bucket_bps, rate),
    )
}

fn ratio(estimate: Option<Estimate>, to: f64) -> String {
    estimate.map_or("-".to_owned(), |estimate| {
        format!(
            "{:.4}[{:.4},{:.4}]",
            estimate.value / to,
            estimate.low / to,
            estimate.high / to
        )
    })
}

/// FNV-1a of 64 bits.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
