"""Coverage-guided fuzzing of a reader for as long as one likes; README.md beside this file says how.

    fuzz.py TARGET [--seconds N] [--out FOLDER]

What is found does not end it: each fault's first input is kept in FOLDER/findings, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["ackclock", "tomllib"]):
    import mutations
    import targets

    from ackclock import engines

    for name in engines.ENGINES:
        engines.engine(name)

#: One change in so many is libFuzzer's own, of bytes.
BLIND = 20

LONGEST_BYTES = 16_384


class Run:
    """One target, and the faults that were found so far."""

    def __init__(self, target: str, out: Path) -> None:
        self._target = targets.TARGETS[target]
        self._change = mutations.CHANGED[target]
        self._findings = out / "findings"
        self._findings.mkdir(parents=True, exist_ok=True)
        self._known: set[str] = set()

    def one(self, data: bytes) -> None:
        """Tries an input, and keeps it if it shows a fault that is new."""
        try:
            self._target(data)
        except targets.Finding as finding:
            if finding.name not in self._known:
                self._known.add(finding.name)
                self._keep(data, finding)

    def changed(self, data: bytes, longest: int, seed: int) -> bytes:
        """Another input to try."""
        random = Random(seed)
        if not random.randrange(BLIND):
            return bytes(atheris.Mutate(data, longest))
        return self._change(data, random)[:longest]

    def _keep(self, data: bytes, finding: targets.Finding) -> None:
        name = f"{re.sub(r'[^A-Za-z0-9.]+', '-', finding.name)}-{hashlib.sha256(data).hexdigest()[:8]}"
        (self._findings / name).write_bytes(data)
        (self._findings / f"{name}.txt").write_text(str(finding), encoding="utf-8")
        print(f"finding {len(self._known)}: {finding.name}", file=sys.stderr, flush=True)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", choices=targets.TARGETS)
    parser.add_argument("--seconds", type=int, default=3600, help="how long (3600)")
    parser.add_argument("--out", type=Path, help="for the corpus and what is found (results/fuzz-TARGET)")
    asked = parser.parse_args()
    out = asked.out or Path("results") / f"fuzz-{asked.target}"
    corpus = out / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(mutations.SEEDS[asked.target]()):
        (corpus / f"seed-{number:03}").write_bytes(seed)
    run = Run(asked.target, out)
    options = [f"-max_total_time={asked.seconds}", f"-max_len={LONGEST_BYTES}", "-timeout=120", "-rss_limit_mb=6000"]
    options += ["-report_slow_units=120", f"-artifact_prefix={out}/findings/"]
    atheris.Setup([sys.argv[0], *options, "-print_final_stats=1", str(corpus)], run.one, custom_mutator=run.changed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
