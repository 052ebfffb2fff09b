"""The gallery: papers' claims as inequalities (`claims`), and the runnable entries whose values judge them.

    result = ackclock.reproduce("B5.4", quick=True)
    [row.verdict for row in result.rows]    # agrees, differs, undetermined, … by the rule in its check.py

An entry is a folder of `reproductions/`:

- `README.md`: its heading is the entry's title; what the paper did, how we read it, what differs and why
- `scenario.toml`: what all its runs have in common
- `cases.toml` (if there are several): what differs from case to case
- `readings.toml` (if the paper can be read in several ways): what each reading changes (`cases`)
- `mechanisms.toml` (optional): what runs show to make the result what it is, by switching it off or on (`ablations`)
- `quick.toml`: what `--quick` changes, for a short look
- `host.py`, in place of these three: what measures the machine itself
- `published.csv`: the published claims, where they are, and how they were obtained
- `check.py`: what is measured in each run, and the rule of the verdict
- `figure.py` (optional): the figure; without it every row is drawn with its bands
- `reproduced.csv`: what the last run at full scale gave; the documentation's page is made from it,
  and from `switched.csv`, what the mechanisms' last runs gave
"""

from __future__ import annotations

from pathlib import Path

from ackclock.engines.engine import Progress, no_progress
from ackclock.gallery.entry import Entry, entries, find
from ackclock.gallery.result import Judged, Result
from ackclock.gallery.rows import (
    AGREES,
    CONTRADICTS,
    DIFFERS,
    NOT_MEASURED,
    UNDETERMINED,
    Measured,
    Row,
    Values,
    in_order,
    near,
    ratio,
)
from ackclock.gallery.runner import run, stored_result
from ackclock.input import arguments
from ackclock.input.arguments import checked, optional

__all__ = [
    "AGREES",
    "CONTRADICTS",
    "DIFFERS",
    "NOT_MEASURED",
    "UNDETERMINED",
    "Entry",
    "Judged",
    "Measured",
    "Result",
    "Row",
    "Values",
    "entries",
    "find",
    "in_order",
    "near",
    "ratio",
    "reproduce",
    "run",
]


@checked(
    name=arguments.WORD,
    folder=optional(arguments.PATH),
    quick=arguments.FLAG,
    jobs=optional(arguments.JOBS),
    progress=arguments.CALL,
)
def reproduce(
    name: str,
    folder: Path | str | None = None,
    *,
    quick: bool = False,
    jobs: int | None = None,
    progress: Progress = no_progress,
) -> Result:
    """Run an entry of the gallery by its name, such as "B5.4", and return its rows with their verdicts.

    The result goes to `folder`, by default `results/reproduce/ID`; one that is up to date there is returned. For the
    other arguments see `run`. Raises `InputError` for an unknown name.
    """
    entry = find(name)
    place = Path(folder) if folder is not None else Path("results", "reproduce", entry.id)
    return stored_result(entry, place, quick=quick) or run(entry, place, quick=quick, jobs=jobs, progress=progress)
