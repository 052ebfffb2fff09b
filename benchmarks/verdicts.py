"""Stability of the verdicts of `ackclock evaluate`: the same evaluations with other seeds, compared.

    python benchmarks/verdicts.py --section 5.1.1 --section 7.2 cubic scalable

Each algorithm is evaluated a number of times, with seeds that no other repetition has. A decided verdict ("more
harmful", "no more harmful") *changes* if another repetition decides the opposite; it *lapses* if another one leaves it
undecided. Both are shares of all pairs of repetitions in which the first one decided. The rule allows each verdict an
error of 1 %, so a question whose answer is not within its interval of the margin never changes.

Recorded with 20 repetitions of `--quick --section 5.1.1 --section 7.2`: for `cubic` none of 3,420 pairs (9 questions)
changed or lapsed; for `scalable`, with `--section 5.2.1` as well, none of 16,226 pairs (57 questions) changed, and
5.81 % lapsed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from ackclock.evaluate import cases, run
from ackclock.evaluate.verdicts import UNDECIDED
from ackclock.scenario import planning

#: Seeds between the first ones of two repetitions: more than a repetition takes.
SEED_STEP = 1000


@dataclass(frozen=True)
class Stability:
    """Pairs of repetitions of the same question in which the first is decided, and what the second says."""

    algorithm: str
    questions: int
    decided: int
    changed: int
    lapsed: int
    unstable: Sequence[str]

    def __str__(self) -> str:
        shares = (100 * count / max(self.decided, 1) for count in (self.changed, self.lapsed))
        return "{}: {} questions, {} pairs; changed {:.2f} %, lapsed {:.2f} %".format(
            self.algorithm, self.questions, self.decided, *shares
        )


def repetitions(algorithm: str, options: argparse.Namespace) -> Iterator[dict[tuple[str, ...], str]]:
    """Yield the verdicts by question of each repetition."""
    found = [
        case
        for section in options.section
        for case in cases.read([cases.FOLDER], planning.load, section=section, quick=options.quick)
    ]
    sizes = run.QUICK_SIZES if options.quick else run.SAMPLE_SIZES
    for number in range(options.repetitions):
        request = run.Request(algorithm, sizes=sizes, first_seed=1 + number * SEED_STEP, jobs=options.jobs)
        with tempfile.TemporaryDirectory() as folder:
            done = run.evaluate(found, request, Path(folder))
        yield {finding.key: finding.verdict for finding in done.findings}


def stability(algorithm: str, verdicts: Sequence[dict[tuple[str, ...], str]]) -> Stability:
    """Compare each repetition with each other one."""
    pairs = [
        (key, one[key], other[key])
        for one, other in permutations(verdicts, 2)
        for key in one
        if one[key] != UNDECIDED and key in other
    ]
    unstable = {" ".join(key) for key, first, second in pairs if second not in (first, UNDECIDED)}
    changed = sum(second not in (first, UNDECIDED) for _, first, second in pairs)
    lapsed = sum(second == UNDECIDED for *_, second in pairs)
    return Stability(algorithm, len(verdicts[0]), len(pairs), changed, lapsed, sorted(unstable))


def main() -> None:
    """Evaluate, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithms", nargs="+")
    parser.add_argument("--section", action="append", required=True, help="a section of RFC 9743; repeatable")
    parser.add_argument("--quick", action="store_true", help="the short evaluation")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for algorithm in options.algorithms:
        found = stability(algorithm, [*repetitions(algorithm, options)])
        print(found, *(f"  changed: {each}" for each in found.unstable), sep="\n", flush=True)


if __name__ == "__main__":
    main()
