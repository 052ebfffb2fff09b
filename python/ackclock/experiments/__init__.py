"""Many runs of many plans: seeds, sweeps, comparisons of engines, the gallery."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ackclock.input import arguments
from ackclock.input.arguments import checked

if TYPE_CHECKING:
    from ackclock.dataset import Dataset
    from ackclock.experiments.sweep.result import Sweep


@checked(folder=arguments.PATH)
def read(folder: Path | str) -> Dataset | Sweep:
    """Return the result in a folder: a dataset, or a sweep.

    Raises `InputError` if there is none, or one that is damaged.
    """
    from ackclock.dataset import Dataset
    from ackclock.dataset.result_kind import Kind, kind
    from ackclock.experiments.sweep import result

    place = Path(folder)
    return result.read(place) if kind(place) is Kind.SWEEP else Dataset.read(place)
