"""Rows of one table as NumPy columns, in blocks that fit into memory.

A table that is small is one block, read once; of a large one, blocks are read anew by each that goes through them, with
only the columns that it names. So a metric that reduces over `blocks` takes the same memory however long the run was.

Used by the view of a run (`view`) and by the metrics that read tables too large for memory.
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

from ackclock.errors import InputError
from ackclock.metrics.protocols import Handed, Piece
from ackclock.metrics.quantiles import quantile

Array: TypeAlias = npt.NDArray[np.float64]
Column: TypeAlias = npt.NDArray[Any]

#: A table with more rows than this is read in blocks of so many.
BLOCK_ROWS = 1 << 18

TIME = "time_s"

#: Numbers of things, which are never null where they are asked for.
INTEGER_TYPES = (pl.UInt32, pl.Boolean)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of one table: `block["cwnd"]` is a column, converted on first use.

    Floats and 64-bit counts are floats with NaN for null, numbers of flows and links are whole.
    """

    source: pl.DataFrame | Handed
    chosen: slice | npt.NDArray[np.intp] | None = None
    _columns: dict[str, Column] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = self._of(self._numbers(name))
        return self._columns[name]

    def items(self, name: str) -> Sequence[Any]:
        """Return a column of strings, or of lists as arrays, with None for null."""
        result = None if isinstance(self.source, pl.DataFrame) else self.source.items(name)
        if result is None:
            column = self.frame[name]
            is_nested = column.dtype == pl.List
            return [cell.to_numpy() if is_nested and cell is not None else cell for cell in column]
        return result if self.chosen is None else [result[place] for place in np.arange(len(result))[self.chosen]]

    def equals(self, name: str, word: str) -> npt.NDArray[np.bool_]:
        """Return which rows have this value in a categorical column."""
        result = None if isinstance(self.source, pl.DataFrame) else self.source.equals(name, word)
        return self._of((self._full_frame[name] == word).to_numpy() if result is None else result)

    @property
    def size(self) -> int:
        """Return the number of rows."""
        if isinstance(self.chosen, slice):
            return len(range(*self.chosen.indices(self.source.height)))
        return int(self.source.height if self.chosen is None else self.chosen.size)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """Return the rows as a Polars frame."""
        return self._full_frame if self.chosen is None else self._full_frame[self.chosen]

    def rows(self, chosen: slice | npt.NDArray[np.intp]) -> Block:
        """Return some of the rows, by their places."""
        places = chosen if self.chosen is None else np.arange(self.source.height)[self.chosen][chosen]
        return Block(self.source, places, {name: values[chosen] for name, values in self._columns.items()})

    def masked(self, mask: npt.NDArray[np.bool_]) -> Block:
        """Return the rows where the mask is true."""
        return self if mask.all() else self.rows(np.flatnonzero(mask))

    def between(self, low_s: float, high_s: float) -> Block:
        """Return the rows from one time to another, both included."""
        first, end = int(np.searchsorted(self[TIME], low_s)), int(np.searchsorted(self[TIME], high_s, side="right"))
        return self if first == 0 and end == self.size else self.rows(slice(first, end))

    @property
    def _full_frame(self) -> pl.DataFrame:
        return self.source if isinstance(self.source, pl.DataFrame) else self.source.frame

    def _numbers(self, name: str) -> Column:
        result = None if isinstance(self.source, pl.DataFrame) else self.source.numbers(name)
        return _array(self._full_frame[name]) if result is None else result

    def _of(self, column: Column) -> Column:
        return column if self.chosen is None else column[self.chosen]


@dataclass(frozen=True, slots=True)
class Choice:
    """Selection of rows of a table by a mask of some columns; and the columns to hide."""

    columns: tuple[str, ...] = ()
    mask: Callable[[Block], npt.NDArray[np.bool_]] | None = None
    hidden: Callable[[str], bool] | None = None

    def of(self, block: Block) -> Block:
        """Apply the selection to a block."""
        result = block.masked(self.mask(block)) if self.mask else block
        if self.hidden is None:
            return result
        hidden = [name for name in result.frame.columns if self.hidden(name)]
        nulls = (pl.lit(None, dtype=result.frame.schema[name]).alias(name) for name in hidden)
        return Block(result.frame.with_columns(*nulls))


@dataclass(frozen=True, eq=False)
class Rows:
    """The selected rows of one table of a run; those with a time in its order, and `within` two times.

    `rows["cwnd"]` is a whole column. Of many samples take `blocks`, or what is made of them here.
    """

    pieces: Sequence[Piece]
    choice: Choice = Choice()
    order: str | None = TIME
    within: tuple[float, float] | None = None
    block_rows: int = field(default_factory=lambda: BLOCK_ROWS)
    _all: Rows | None = field(default=None, repr=False)

    def between(self, low_s: float, high_s: float) -> Rows:
        """Return the rows from one time to another, both included."""
        return Rows(self.pieces, self.choice, self.order, (low_s, high_s), self.block_rows, self)

    @cached_property
    def is_small(self) -> bool:
        """Return True if all rows are one block."""
        return sum(piece.height for piece in self.pieces) <= self.block_rows

    @cached_property
    def as_block(self) -> Block:
        """Return all the rows at once."""
        if self.within is not None and self._all is not None and self._all.is_small:
            return self._all.as_block.between(*self.within)
        result = self._ordered(self._every(()))
        return result if self.within is None else result.between(*self.within)

    def frame(self) -> pl.DataFrame:
        """Return all the rows as a Polars frame."""
        return self.as_block.frame

    def __getitem__(self, name: str) -> Column:
        if self.is_small:
            return self.as_block[name]
        parts = [block[name] for block in self.blocks(name)]
        return np.concatenate(parts) if parts else np.empty(0)

    def blocks(self, *names: str) -> Iterator[Block]:
        """Yield the rows with these columns in blocks, in the order of time; equal times are in one block."""
        if self.is_small:
            yield self.as_block
            return
        names = tuple(dict.fromkeys([TIME, *names])) if self.order == TIME else names
        result = self._slices(names) if self._is_ordered else iter([self._ordered(self._every(names))])
        for block in _instants(result) if self.order == TIME else result:
            within = block if self.within is None else block.between(*self.within)
            if within.size:
                yield within

    def values(self, name: str) -> Iterator[Array]:
        """Yield the values of a column that are not null, in blocks."""
        for block in self.blocks(name):
            values = block[name]
            missing = np.isnan(values)
            yield values[~missing] if missing.any() else values

    def count(self, name: str) -> int:
        """Return how many values are not null."""
        return sum(values.size for values in self.values(name))

    def sum(self, name: str) -> float | None:
        """Return the sum of a column; None without values."""
        total, count = self._total(name)
        return total if count else None

    def mean(self, name: str) -> float | None:
        """Return the mean of a column; None without values."""
        total, count = self._total(name)
        return total / count if count else None

    def _total(self, name: str) -> tuple[float, int]:
        """Return the sum of a column, and the number of values."""
        result = [(float(values.sum()), values.size) for values in self.values(name)]
        return math.fsum(total for total, _ in result), sum(size for _, size in result)

    def quantile(self, name: str, share: float) -> float | None:
        """Return the value that this share of a column does not exceed, linear between two; None without values."""
        return quantile(lambda: self.values(name), share, self.block_rows)

    @cached_property
    def _is_ordered(self) -> bool:
        """Return True if the rows are in the order of time."""
        last_s = -np.inf
        for block in self._slices((TIME,)) if self.order == TIME else ():
            times_s = block[TIME]
            if times_s.size and (times_s[0] < last_s or (np.diff(times_s) < 0).any()):
                return False
            last_s = times_s[-1] if times_s.size else last_s
        return True

    def _slices(self, names: tuple[str, ...]) -> Iterator[Block]:
        for piece in self.pieces:
            for first in range(0, piece.height, self.block_rows):
                yield self._read(piece, first, names)

    def _every(self, names: tuple[str, ...]) -> Block:
        if self.is_small and len(self.pieces) == 1:
            return self._read(self.pieces[0], 0, names)
        result = [block.frame for block in self._slices(names)]  # of each block only the chosen rows are kept
        return Block(pl.concat(result)) if result else self._read(self.pieces[0], 0, names)

    def _ordered(self, block: Block) -> Block:
        if self.order is None or not block.size:
            return block
        by = block[self.order]
        return block if (by[1:] >= by[:-1]).all() else block.rows(np.argsort(by, kind="stable"))

    def _read(self, piece: Piece, first: int, names: tuple[str, ...]) -> Block:
        columns = [*dict.fromkeys([*names, *self.choice.columns])] if names else ()
        result = self.choice.of(Block(piece.read(first, self.block_rows, columns)))
        return Block(result.frame.select(names)) if names else result


def sampling_interval_s(times_s: Array) -> float:
    """Return the median time between samples at these times; NaN with fewer than two."""
    return float(np.median(np.diff(times_s), overwrite_input=True)) if times_s.size > 1 else float("nan")


def ordered(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.intp]:
    """Return the places of the numbers in ascending order, stable. Small numbers are sorted by radix."""
    is_short = numbers.max(initial=0) < 1 << 16
    return np.argsort(numbers.astype(np.uint16) if is_short else numbers, kind="stable")


def _array(series: pl.Series) -> Column:
    """Return numbers as they are where none is null; counts and nullable values as floats."""
    if series.dtype.is_float() or (series.dtype in INTEGER_TYPES and not series.null_count()):
        return series.to_numpy()
    return series.cast(pl.Float64).to_numpy() if series.dtype.is_numeric() else series.to_physical().to_numpy()


def _instants(blocks: Iterator[Block]) -> Iterator[Block]:
    """Regroup rows into blocks that end between two instants."""
    left: Block | None = None
    for block in blocks:
        rows = block if left is None else Block(pl.concat([left.frame, block.frame]))
        if rows.size:
            times_s = rows[TIME]
            end = int(np.searchsorted(times_s, times_s[-1]))
            left = rows.rows(slice(end, None))
            yield rows.rows(slice(0, end))
    if left is not None:
        yield left


@dataclass(frozen=True)
class Grid:
    """Flow samples on a grid: `times_s` (T), `flows` (F), and matrices of T × F with NaN where there is no sample."""

    times_s: Array
    flows: npt.NDArray[np.uint32]
    _rows: npt.NDArray[np.intp]
    _columns: npt.NDArray[np.intp]
    _samples: pl.DataFrame

    @staticmethod
    def of(samples: pl.DataFrame) -> Grid:
        """Return the grid that holds all the samples of one run."""
        times, flows = samples["time_s"], samples["flow"]
        grid_times, rows = _ranked(times)
        grid_flows, columns = _ranked(flows)
        return Grid(grid_times, grid_flows, rows, columns, samples)

    def matrix(self, column: str) -> Array:
        """Return a column of `flow_samples` as a T × F matrix."""
        matrix = np.full((self.times_s.size, self.flows.size), np.nan)
        matrix[self._rows, self._columns] = self._samples[column].cast(pl.Float64).to_numpy()
        return matrix

    @cached_property
    def delivered_bytes(self) -> Array:
        """Return bytes acknowledged so far; 0 before a flow's first sample, the last value after its last."""
        return _filled(self.matrix("delivered_bytes"))

    @property
    def interval_s(self) -> float:
        """Return the median time between samples."""
        return sampling_interval_s(self.times_s)

    def rates_bps(self, window_s: float) -> Array:
        """Return each flow's goodput over the `window_s` before each sample time (shorter at the start)."""
        first = np.searchsorted(self.times_s, self.times_s - window_s * (1 + 1e-9))
        span = self.times_s - self.times_s[first]
        bits = 8 * (self.delivered_bytes - self.delivered_bytes[first])
        return np.divide(bits, span[:, None], out=np.zeros_like(bits), where=span[:, None] > 0)


def _ranked(series: pl.Series) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return the distinct values in ascending order, and the place of each row's value among them."""
    values, result = series.unique().sort().to_numpy(), series.to_numpy()
    if result.size and np.issubdtype(result.dtype, np.integer) and int(values[-1]) < 4 * result.size:
        places = np.empty(int(values[-1]) + 1, dtype=np.intp)
        places[values] = np.arange(values.size)
        return values, places[result]
    if np.all(result[1:] >= result[:-1]):
        return values, np.cumsum(np.diff(result, prepend=result[:1]) > 0)
    return values, np.searchsorted(values, result)


def _filled(matrix: Array) -> Array:
    valid = np.where(np.isnan(matrix), -1, np.arange(matrix.shape[0])[:, None])
    last = np.maximum.accumulate(valid, axis=0)
    return np.where(last < 0, 0.0, np.take_along_axis(matrix, np.maximum(last, 0), axis=0))


@dataclass(frozen=True, slots=True)
class FlowLifetimes:
    """Flows with their start and end (s; infinity: not in this run), and the bytes they delivered."""

    flows: npt.NDArray[np.uint32]
    starts_s: Array
    ends_s: Array
    delivered_bytes: Array

    #: Their source columns.
    COLUMNS = ("flow", "start_s", "fct_s", "end_s", "delivered_bytes")

    def of(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> FlowLifetimes:
        """Return some of the flows."""
        return FlowLifetimes(
            self.flows[chosen], self.starts_s[chosen], self.ends_s[chosen], self.delivered_bytes[chosen]
        )


def flow_lifetimes(block: Block) -> FlowLifetimes:
    """Return the lifetimes of a block of `flows`: a transfer ends when it is complete, else when its flow does.

    Raises `InputError` for a flow that is there twice.
    """
    flows = block["flow"]
    if (flows[1:] <= flows[:-1]).any() and np.unique(flows).size < flows.size:
        raise InputError("the table 'flows': found a flow twice in a run; expected a row for each")
    done_s = block["start_s"] + block["fct_s"]
    ends_s = np.where(np.isnan(done_s), block["end_s"], done_s)
    ends_s[np.isnan(ends_s)] = np.inf
    return FlowLifetimes(block["flow"], block["start_s"], ends_s, block["delivered_bytes"])


def is_bottleneck(block: Block) -> npt.NDArray[np.bool_]:
    """Return which links of a block are bottlenecks."""
    return np.asarray(block["bottleneck"], dtype=bool)


def is_of(links: Sequence[int], block: Block) -> npt.NDArray[np.bool_]:
    """Return which rows of a block are of these links."""
    return np.isin(block["link"], links)
