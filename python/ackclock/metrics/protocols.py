"""Interfaces of the data that metrics read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.partial_plan import PartialPlan

#: The key of a manifest with the comparison of the result with its perturbed run.
PHASE = "phase"


class Handed(Protocol):
    """Rows as an engine handed them over, of which a frame is made on demand."""

    @property
    def height(self) -> int:
        """Return the number of rows."""

    @property
    def frame(self) -> pl.DataFrame:
        """Return all rows."""

    def numbers(self, name: str) -> npt.NDArray[Any] | None:
        """Return a numeric column in the form of a block; None for others: take the frame."""

    def items(self, name: str) -> Sequence[Any] | None:
        """Return a column of strings or lists; None for others: take the frame."""

    def equals(self, name: str, word: str) -> npt.NDArray[np.bool_] | None:
        """Return which rows have this value in a categorical column; None for others: take the frame."""


class Piece(Protocol):
    """A contiguous part of one table's rows."""

    @property
    def height(self) -> int:
        """Return the number of rows."""

    def read(self, first: int, count: int, columns: Sequence[str] = ()) -> pl.DataFrame | Handed:
        """Return `count` rows from one on, with at least these columns. Raises `InputError`."""


class Recorded(Protocol):
    """Tables of runs and their manifest: `ackclock.dataset.Dataset` is one."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Return the engine, the plan, the runs."""

    @property
    def plan(self) -> PartialPlan:
        """Return the known parts of the plan."""

    @property
    def runs(self) -> Sequence[Mapping[str, Any]]:
        """Return the manifest's runs."""

    @property
    def parts(self) -> Mapping[str, Sequence[Piece]]:
        """Return the parts of each table."""

    @property
    def measured(self) -> dict[Any, Any]:
        """Return the cache of computed metrics: the tables do not change."""

    def scan(self, table: str) -> pl.LazyFrame:
        """Return a table as a lazy frame. Raises `KeyError` for an unknown table."""
