//! The conservative lattice over (window, w_max): the same equations in another form.
//!
//! In TCP mode cells are a packet wide; windows grow by upwind steps, with no flux out of the top cell; a loss
//! at w' puts the mass at (1 − β) w', split linearly over the two neighbouring cells.
//!
//! In cubic mode the rate of growth on such cells vanishes at w = w_max and traps mass there; with rates of the
//! mean transit from cell to cell, the transit times scatter by cbrt(Δw / β w_max) of a cycle, a third where
//! a lattice of W² is affordable. So the cells of each w_max are as wide as windows grow in a step: upwind
//! growth at a Courant number of 1 is a shift, without scatter. A loss at w' puts the mass at the curve of
//! w_max = w', split linearly over the two neighbouring whole w_max.

use ackclock_models::meanfield::plan::Plan;

/// Curve that the windows of the lattice follow.
#[derive(Clone, Copy)]
pub enum Growth {
    /// Fixed growth per round trip, independent of w_max.
    Line(f64),
    /// CUBIC's curve with this constant.
    Cubic(f64),
}

/// The share of the flows in each cell; windows and queue of one flow.
pub struct Lattice {
    growth: Growth,
    kept: f64,
    /// Cells in a row.
    size: usize,
    /// Rows of cells: one for each whole w_max, or a single one.
    p: Vec<Vec<f64>>,
    /// The window of each cell.
    windows: Vec<Vec<f64>>,
    once: bool,
    l_pps: f64,
    base_s: f64,
    buffer_p: f64,
    step_s: f64,
    q_p: f64,
    losses: Vec<f64>,
    /// Mean window over time.
    pub means: Vec<f64>,
    /// Queue over time.
    pub queue: Vec<f64>,
}

impl Lattice {
    /// A lattice of `rows` of `size` cells, all flows just after a loss; greater windows are put into the last row.
    pub fn new(plan: &Plan, growth: Growth, kept: f64, rows: usize, size: usize) -> Lattice {
        let flows = plan.flow_count() as f64;
        let base_s = plan.classes[0].base_rtt_s;
        let step_s = if rows > 1 {
            base_s / 10.0
        } else {
            base_s / 25.0
        };
        let window = |row: usize, cell: usize| match growth {
            Growth::Line(_) => cell as f64,
            Growth::Cubic(c) => {
                let v = ((1.0 - kept) * row as f64 / c).cbrt();
                c * (cell as f64 * step_s - v).powi(3) + row as f64
            }
        };
        let mut lattice = Lattice {
            growth,
            kept,
            size,
            p: vec![vec![0.0; size]; rows],
            windows: (0..rows)
                .map(|row| (0..size).map(|cell| window(row, cell)).collect())
                .collect(),
            once: plan.one_reduction_per_rtt,
            l_pps: plan.rate_pps / flows,
            base_s,
            buffer_p: plan.buffer_p / flows,
            step_s,
            q_p: 0.0,
            losses: Vec::new(),
            means: Vec::new(),
            queue: Vec::new(),
        };
        lattice.put(lattice.l_pps * base_s + lattice.buffer_p, 1.0);
        lattice
    }

    fn put(&mut self, from: f64, mass: f64) {
        let place = match self.growth {
            Growth::Line(_) => self.kept * from,
            Growth::Cubic(_) => from.min(self.p.len() as f64 - 2.0),
        };
        let (place, share) = (place.max(1.0) as usize, place.max(1.0).fract());
        match self.growth {
            Growth::Line(_) => {
                self.p[0][place] += mass * (1.0 - share);
                self.p[0][place + 1] += mass * share;
            }
            Growth::Cubic(_) => {
                self.p[place][0] += mass * (1.0 - share);
                self.p[place + 1][0] += mass * share;
            }
        }
    }

    /// Advance by a time.
    pub fn run(&mut self, duration_s: f64) {
        for _ in 0..(duration_s / self.step_s).round() as usize {
            self.step();
        }
    }

    fn step(&mut self) {
        let r = self.base_s + self.q_p / self.l_pps;
        let cells = self.p.iter().flatten().zip(self.windows.iter().flatten());
        let mean: f64 = cells.map(|(p, window)| p * window).sum();
        self.means.push(mean);
        self.queue.push(self.q_p);
        let arriving = mean / r * self.step_s;
        let there = self.q_p + arriving - (self.l_pps * self.step_s).min(self.q_p + arriving);
        self.q_p = there.min(self.buffer_p);
        self.losses.push((there - self.q_p) / arriving);
        let kd = self.delayed(r);
        if kd > 0.0 {
            self.lose(kd, r);
        }
        match self.growth {
            Growth::Line(a) => self.flow_up(-(-a / r * self.step_s).exp_m1()),
            Growth::Cubic(_) => self.shift(),
        }
    }

    fn delayed(&self, r: f64) -> f64 {
        let then = (self.losses.len() - 1) as f64 - r / self.step_s;
        if then < 0.0 {
            return 0.0;
        }
        let share = then.fract();
        self.losses[then as usize] * (1.0 - share) + self.losses[then as usize + 1] * share
    }

    fn lose(&mut self, kd: f64, r: f64) {
        let immune = if self.once {
            (r / self.step_s).ceil() as usize
        } else {
            0
        };
        let mut lost = Vec::new();
        for (row, windows) in self.p.iter_mut().zip(&self.windows) {
            for (p, window) in row
                .iter_mut()
                .zip(windows)
                .skip(immune)
                .filter(|(p, _)| **p > 0.0)
            {
                let gone = *p * -(-kd * window * self.step_s / r).exp_m1();
                *p -= gone;
                lost.push((*window, gone));
            }
        }
        for (window, mass) in lost {
            self.put(window, mass);
        }
    }

    fn flow_up(&mut self, share: f64) {
        let mut carried = 0.0;
        for p in &mut self.p[0][..self.size - 1] {
            let up = *p * share;
            *p += carried - up;
            carried = up;
        }
        self.p[0][self.size - 1] += carried;
    }

    fn shift(&mut self) {
        for row in &mut self.p {
            let top = row[self.size - 1];
            row.copy_within(..self.size - 1, 1);
            row[0] = 0.0;
            row[self.size - 1] += top;
        }
    }

    /// All the mass.
    pub fn total(&self) -> f64 {
        self.p.iter().flatten().sum()
    }

    /// Mass in the top cells.
    pub fn top_mass(&self) -> f64 {
        self.p.iter().map(|row| row[self.size - 1]).sum()
    }

    /// Mean over the second half of the run.
    pub fn late(values: &[f64]) -> f64 {
        let half = &values[values.len() / 2..];
        half.iter().sum::<f64>() / half.len() as f64
    }
}
