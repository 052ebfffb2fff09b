"""What metrics are taken of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import polars as pl

from ackclock.known import KnownPlan


class Piece(Protocol):
    """Rows of one table that lie together."""

    @property
    def height(self) -> int:
        """How many rows there are."""

    def read(self, first: int, count: int, columns: Sequence[str] = ()) -> pl.DataFrame:
        """`count` rows from one on, with these columns, or more. Raises `InputError` if they cannot be read."""


class Recorded(Protocol):
    """Tables of runs and the manifest that says how they came about: `ackclock.dataset.Dataset` is one."""

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

    def scan(self, table: str) -> pl.LazyFrame:
        """A table as a lazy frame. Raises `KeyError` for an unknown table."""
