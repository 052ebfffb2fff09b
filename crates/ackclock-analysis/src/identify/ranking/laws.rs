//! Controls that did the same over a flow: one law, and several names for it.
//!
//! Where a window stays below their thresholds several controls *are* Reno; DCTCP without marks is, and Compound is
//! AIMD. No flow distinguishes them there. Only the law is identified, and it is as probable whatever the number of its
//! names.

use crate::identify::likelihood::MIN_SCALE;

/// Logarithms of probabilities that differ by less are those of one law, summed in another order.
const ROUNDING: f64 = 1e-6;

/// A candidate's evidence for a flow.
#[derive(Clone, Debug)]
pub(super) struct Explains {
    /// Its place among the candidates.
    pub place: usize,
    /// Logarithm of prior times likelihood, tempered.
    pub log: f64,
    /// The number of its parameters.
    pub parameters: usize,
    /// By what its windows were off, one value a round.
    pub errors: Vec<f64>,
}

/// Candidates with the same windows over a flow: the first name, and the others.
#[derive(Clone, Debug)]
pub(super) struct Law {
    pub first: Explains,
    pub same: Vec<usize>,
}

/// The laws, the most probable first. Of names that are as probable the plainest comes first: that with the fewest
/// parameters, as the other behaviour of candidates was not observed.
pub(super) fn laws(mut explain: Vec<Explains>) -> Vec<Law> {
    let steps = |one: &Explains| (one.log / ROUNDING).round();
    explain.sort_by(|a, b| {
        let by_probability = steps(b).total_cmp(&steps(a));
        by_probability.then(a.parameters.cmp(&b.parameters))
    });
    let mut laws: Vec<Law> = Vec::new();
    for one in explain {
        match laws.iter_mut().find(|law| law.first.does_the_same(&one)) {
            Some(law) => law.same.push(one.place),
            None => laws.push(Law {
                first: one,
                same: Vec::new(),
            }),
        }
    }
    laws
}

impl Explains {
    /// By what share its windows are off in half of the rounds or more.
    pub(super) fn off(&self) -> Option<f64> {
        let mut off: Vec<f64> = self.errors.iter().map(|error| error.abs()).collect();
        off.sort_by(f64::total_cmp);
        off.get(off.len() / 2).map(|error| error.exp_m1())
    }

    /// Return true if their windows differ by no more, in the mean, than those of an exact replay do from what was
    /// seen.
    fn does_the_same(&self, other: &Self) -> bool {
        let pairs = self.errors.iter().zip(&other.errors);
        let off: f64 = pairs.map(|(one, other)| (one - other).abs()).sum();
        off < MIN_SCALE * self.errors.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explains(place: usize, log: f64, parameters: usize, error: f64) -> Explains {
        Explains {
            place,
            log,
            parameters,
            errors: vec![error; 10],
        }
    }

    fn names(explain: Vec<Explains>) -> Vec<(usize, Vec<usize>)> {
        let matched = laws(explain);
        matched
            .into_iter()
            .map(|law| (law.first.place, law.same))
            .collect()
    }

    #[test]
    fn equal_windows_are_one_law_named_after_the_simplest_candidate() {
        let matched = names(vec![
            explains(0, -1.0, 6, 0.0),
            explains(1, -1.0 + 1e-9, 0, 1e-4),
            explains(2, -1.0, 3, 0.1),
        ]);
        assert_eq!(matched, [(1, vec![0]), (2, vec![])]);
    }

    #[test]
    fn a_more_probable_name_precedes_a_simpler_one() {
        let matched = names(vec![explains(0, -4.0, 0, 0.0), explains(1, -1.0, 6, 0.0)]);
        assert_eq!(matched, [(1, vec![0])]);
    }

    #[test]
    fn without_rounds_no_candidates_are_equal() {
        let blank = |place| Explains {
            errors: Vec::new(),
            ..explains(place, 0.0, 0, 0.0)
        };
        assert_eq!(names(vec![blank(0), blank(1)]).len(), 2);
    }
}
