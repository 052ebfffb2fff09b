"""Perturbed runs of a sweep's points: which of them hang on a coincidence of phases (`experiments.phase_effects`).

The perturbed runs are a sweep in a folder of its own, which is kept and continued as any other.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ackclock.errors import InputError
from ackclock.experiments import phase_effects
from ackclock.experiments.sweep import folder as parts
from ackclock.experiments.sweep import result
from ackclock.experiments.sweep.result import Sweep
from ackclock.experiments.sweep.spec import SweepSpec
from ackclock.metrics import main
from ackclock.metrics.protocols import PHASE


def order(of: SweepSpec) -> SweepSpec:
    """Return the spec of the perturbed runs. Raises `InputError` for a part of a sweep, or unsuitable metrics."""
    if of.shard is not None:
        raise InputError("--perturb: found --shard beside it; expected the whole sweep")
    if not set(of.metrics) & set(main("table")):
        raise InputError(f"--perturb: found none of the main metrics; expected one of {', '.join(main('table'))}")
    return replace(of, perturbed=True)


def perturbed_folder(folder: Path) -> Path:
    """Return the folder of the perturbed runs."""
    return folder.with_name(f"{folder.name}-twin")


def with_perturbed(done: Sweep, other: Sweep) -> Sweep:
    """Return the sweep, its manifest extended by each point's comparison with its perturbed run."""
    noisy = {point["point"]: point["summary"] for point in other.points}
    pairs = {point["point"]: (point["summary"], noisy[point["point"]]) for point in done.points}
    found = {str(number): phase_effects.compared(*pair) for number, pair in pairs.items()}
    parts.extend_manifest(done.folder, {PHASE: found})
    return replace(result.read(done.folder), keep=done.keep)
