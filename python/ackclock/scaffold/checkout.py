"""The checkout that a control is added to: Rust's sources and the cards, side by side."""

from __future__ import annotations

from pathlib import Path

from ackclock.errors import InputError
from ackclock.system.files import readable

#: The crate's list of the controls, and the folder of their cards.
LIST = Path("crates/ackclock-congestion/src/lib.rs")
CARDS = Path("python/ackclock/algorithms/congestion")


def checkout(given: Path | None) -> Path:
    """The folder of a checkout: the given one, or the first from here upwards. Raises `InputError` for none."""
    start = Path.cwd() if given is None else given.absolute()
    folders = (start, *start.parents) if given is None else (start,)
    for folder in folders:
        if (folder / LIST).is_file() and (folder / CARDS).is_dir():
            return folder
    where, how = (start, "; --checkout DIR names one") if given is None else (given, "")
    raise InputError(f"{readable(where)}: found no source checkout of ackclock; expected a folder with {LIST}{how}")
