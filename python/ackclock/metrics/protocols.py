"""What metrics are taken of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.partial_plan import KnownPlan

#: The key of a manifest that has what a noisy twin said of the result.
PHASE = "phase"


class Handed(Protocol):
    """Rows as an engine handed them over, of which a frame is made when somebody asks for it."""

    @property
    def height(self) -> int:
        """How many rows there are."""

    @property
    def frame(self) -> pl.DataFrame:
        """All of them."""

    def numbers(self, name: str) -> npt.NDArray[Any] | None:
        """A column of numbers as a block has it; None for another: look at the frame."""

    def items(self, name: str) -> Sequence[Any] | None:
        """A column of words or lists; None for another: look at the frame."""

    def equals(self, name: str, word: str) -> npt.NDArray[np.bool_] | None:
        """Which rows have this word in a column of words; None for another: look at the frame."""


class Piece(Protocol):
    """Rows of one table that lie together."""

    @property
    def height(self) -> int:
        """How many rows there are."""

    def read(self, first: int, count: int, columns: Sequence[str] = ()) -> pl.DataFrame | Handed:
        """`count` rows from one on, with these columns, or more. Raises `InputError` if they cannot be read."""


class Recorded(Protocol):
    """Tables of runs and the manifest that gives how they came about: `ackclock.dataset.Dataset` is one."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The engine, the plan, the runs."""

    @property
    def plan(self) -> KnownPlan:
        """What is known of the plan."""

    @property
    def runs(self) -> Sequence[Mapping[str, Any]]:
        """The manifest's runs."""

    @property
    def parts(self) -> Mapping[str, Sequence[Piece]]:
        """The pieces of each table."""

    @property
    def measured(self) -> dict[Any, Any]:
        """What is kept of it once it is known: the tables do not change."""

    def scan(self, table: str) -> pl.LazyFrame:
        """A table as a lazy frame. Raises `KeyError` for an unknown table."""
