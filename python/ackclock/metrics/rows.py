"""Rows of one table as NumPy columns, in blocks that fit into memory.

A table that is small is one block, read once; of a large one, blocks are read anew by each that goes through them, with
only the columns that it names. So a metric that reduces over `blocks` takes the same memory however long the run was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock.metrics.quantiles import quantile
from ackclock.metrics.recorded import Piece

Array: TypeAlias = npt.NDArray[np.float64]
Column: TypeAlias = npt.NDArray[Any]

#: A table with more rows than this is read in blocks of so many.
BLOCK_ROWS = 1 << 16

TIME = "time_s"

#: Numbers of things, which are never null where they are asked for.
WHOLE = (pl.UInt32, pl.Boolean)


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows: `block["cwnd"]` is a column, converted when it is first asked for.

    Floats and 64-bit counts are floats with NaN for null, numbers of flows and links are whole.
    """

    frame: pl.DataFrame
    _columns: dict[str, Column] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = _array(self.frame[name])
        return self._columns[name]

    @property
    def size(self) -> int:
        """How many rows there are."""
        return int(self.frame.height)

    def between(self, low_s: float, high_s: float) -> Block:
        """The rows from one time to another, both included."""
        first, end = int(np.searchsorted(self[TIME], low_s)), int(np.searchsorted(self[TIME], high_s, side="right"))
        if first == 0 and end == self.size:
            return self
        return Block(self.frame[first:end], {name: values[first:end] for name, values in self._columns.items()})


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rows of a table are looked at: a mask made of some columns; and the columns that shall not be known."""

    columns: tuple[str, ...] = ()
    mask: Callable[[Block], npt.NDArray[np.bool_]] | None = None
    hidden: Callable[[str], bool] | None = None

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """What is chosen of a frame."""
        mask = self.mask(Block(frame)) if self.mask else None
        found = frame if mask is None or mask.all() else frame.filter(mask)
        if self.hidden is None:
            return found
        hidden = [name for name in found.columns if self.hidden(name)]
        return found.with_columns(pl.lit(None, dtype=found.schema[name]).alias(name) for name in hidden)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one table of a run that are chosen; those with a time in its order, and `within` two times.

    `rows["cwnd"]` is a whole column. Of many samples take `blocks`, or what is made of them here.
    """

    pieces: Sequence[Piece]
    choice: Choice = Choice()
    order: str | None = TIME
    within: tuple[float, float] | None = None
    block_rows: int = field(default_factory=lambda: BLOCK_ROWS)
    _all: Rows | None = field(default=None, repr=False)

    def between(self, low_s: float, high_s: float) -> Rows:
        """The rows from one time to another, both included."""
        return Rows(self.pieces, self.choice, self.order, (low_s, high_s), self.block_rows, self)

    @cached_property
    def is_small(self) -> bool:
        """Whether all is one block."""
        return sum(piece.height for piece in self.pieces) <= self.block_rows

    @cached_property
    def whole(self) -> Block:
        """All the rows at once."""
        if self.within is not None and self._all is not None and self._all.is_small:
            return self._all.whole.between(*self.within)
        found = Block(self._ordered(self._every(())))
        return found if self.within is None else found.between(*self.within)

    def frame(self) -> pl.DataFrame:
        """All the rows as a Polars frame."""
        return self.whole.frame

    def __getitem__(self, name: str) -> Column:
        if self.is_small:
            return self.whole[name]
        parts = [block[name] for block in self.blocks(name)]
        return np.concatenate(parts) if parts else np.empty(0)

    def blocks(self, *names: str) -> Iterator[Block]:
        """The rows with these columns in blocks, in the order of time; those of one instant are in one block."""
        if self.is_small:
            yield self.whole
            return
        names = tuple(dict.fromkeys([TIME, *names])) if self.order == TIME else names
        found = self._slices(names) if self._is_ordered else iter([self._ordered(self._every(names))])
        for frame in _instants(found) if self.order == TIME else found:
            block = Block(frame) if self.within is None else Block(frame).between(*self.within)
            if block.size:
                yield block

    def known(self, name: str) -> Iterator[Array]:
        """The values of a column that are not null, in blocks."""
        for block in self.blocks(name):
            values = block[name]
            missing = np.isnan(values)
            yield values[~missing] if missing.any() else values

    def count(self, name: str) -> int:
        """How many values are not null."""
        return sum(values.size for values in self.known(name))

    def sum(self, name: str) -> float | None:
        """The sum of a column; None without values."""
        total, count = self._total(name)
        return total if count else None

    def mean(self, name: str) -> float | None:
        """The mean of a column; None without values."""
        total, count = self._total(name)
        return total / count if count else None

    def _total(self, name: str) -> tuple[float, int]:
        """The sum of a column, and of how many values."""
        found = [(float(values.sum()), values.size) for values in self.known(name)]
        return math.fsum(total for total, _ in found), sum(size for _, size in found)

    def quantile(self, name: str, share: float) -> float | None:
        """The value that this share of a column does not exceed, linear between two; None without values."""
        return quantile(lambda: self.known(name), share, self.block_rows)

    @cached_property
    def _is_ordered(self) -> bool:
        """Whether the rows are in the order of time as they come."""
        last_s = -np.inf
        for frame in self._slices((TIME,)) if self.order == TIME else ():
            times_s = frame[TIME].to_numpy()
            if times_s.size and (times_s[0] < last_s or (np.diff(times_s) < 0).any()):
                return False
            last_s = times_s[-1] if times_s.size else last_s
        return True

    def _slices(self, names: tuple[str, ...]) -> Iterator[pl.DataFrame]:
        for piece in self.pieces:
            for first in range(0, piece.height, self.block_rows):
                yield self._read(piece, first, names)

    def _every(self, names: tuple[str, ...]) -> pl.DataFrame:
        found = [*self._slices(names)] or [self._read(self.pieces[0], 0, names)]
        return found[0] if len(found) == 1 else pl.concat(found)

    def _ordered(self, frame: pl.DataFrame) -> pl.DataFrame:
        if self.order is None or not frame.height:
            return frame
        by = frame[self.order].to_numpy()
        return frame if (by[1:] >= by[:-1]).all() else frame.sort(self.order, maintain_order=True)

    def _read(self, piece: Piece, first: int, names: tuple[str, ...]) -> pl.DataFrame:
        needed = [*dict.fromkeys([*names, *self.choice.columns])] if names else ()
        found = self.choice.of(piece.read(first, self.block_rows, needed))
        return found.select(names) if names else found


def ordered(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.intp]:
    """The places of the numbers in ascending order, equal ones as they come. Small numbers are sorted by radix."""
    is_short = numbers.max(initial=0) < 1 << 16
    return np.argsort(numbers.astype(np.uint16) if is_short else numbers, kind="stable")


def _array(series: pl.Series) -> Column:
    """Numbers as they are where none is null; counts and what may be null as floats."""
    if series.dtype.is_float() or (series.dtype in WHOLE and not series.null_count()):
        return series.to_numpy()
    return series.cast(pl.Float64).to_numpy() if series.dtype.is_numeric() else series.to_physical().to_numpy()


def _instants(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same rows in frames that end between two instants."""
    left: pl.DataFrame | None = None
    for frame in frames:
        rows = frame if left is None else pl.concat([left, frame])
        if rows.height:
            times_s = rows[TIME].to_numpy()
            end = int(np.searchsorted(times_s, times_s[-1]))
            left = rows[end:]
            yield rows[:end]
    if left is not None:
        yield left
