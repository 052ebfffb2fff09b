"""Columns as an engine hands them over mean what their frame says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
import synthetic
from hypothesis import given, settings
from hypothesis import strategies as st

from ackclock.dataset import tables
from ackclock.dataset.lazy_frame import Columns, frame, joined
from ackclock.dataset.tables import TABLES, Field
from ackclock.metrics.rows import Block

NAMES = {
    "packets.kind": ("data", "ack"),
    "transmissions.kind": ("data", "ack"),
    **{
        f"{table}.{name}": field.dtype.categories.to_list()
        for table, fields in TABLES.items()
        for name, field in fields.items()
        if isinstance(field.dtype, pl.Enum)
    },
}


def cells(field: Field) -> st.SearchStrategy[Any]:
    """Columns as an engine may fill them, with everything that means null."""
    if field.dtype == tables.F64:
        return st.sampled_from([0.0, 1.5, -2.0, 1e300, *([math.nan, math.inf, -math.inf] if field.nullable else [])])
    if field.dtype in (tables.U32, tables.U64):
        bits = 32 if field.dtype == tables.U32 else 64
        return st.sampled_from([0, 1, 7, 2**bits - 2, 2**bits - 1])
    if field.dtype == tables.BOOL:
        return st.booleans()
    if isinstance(field.dtype, pl.List):
        return st.sampled_from([[], [1, 2], [3]])
    return st.integers(0, 1) if isinstance(field.dtype, tables.CATEGORICAL) else st.sampled_from(["udp", "cubic"])


def column(field: Field, values: list[Any]) -> Any:
    """Columns as the engines in Rust return them."""
    types = {tables.F64: np.float64, tables.U32: np.uint32, tables.U64: np.uint64, tables.BOOL: np.bool_}
    if isinstance(field.dtype, tables.CATEGORICAL):
        return np.array(values, np.uint8)
    if isinstance(field.dtype, pl.List):
        kind = np.uint64 if field.dtype.inner == pl.UInt64 else np.float64
        return [np.array(value, kind) for value in values]
    return np.array(values, types[field.dtype]) if field.dtype in types else values


@st.composite
def handed(draw: st.DrawFn, table: str) -> dict[str, Any]:
    """Some rows, perhaps without columns that may be absent."""
    count = draw(st.integers(1, 4))
    fields = {name: field for name, field in TABLES[table].items() if name != "run"}
    kept = [name for name, field in fields.items() if not field.nullable or draw(st.booleans())]
    return {
        name: column(fields[name], draw(st.lists(cells(fields[name]), min_size=count, max_size=count))) for name in kept
    }


def assert_as_its_frame(given: Columns, chosen: Any) -> None:
    block, valid = Block(given, chosen), Block(given.frame, chosen)
    assert block.size == valid.size
    for name, field in TABLES[given.table].items():
        if field.dtype.is_numeric() or field.dtype == tables.BOOL:
            assert np.array_equal(block[name].astype(float), valid[name].astype(float), equal_nan=True), name
        elif isinstance(field.dtype, pl.List):
            assert [list(cell) for cell in block.items(name) if cell is not None] == [
                list(cell) for cell in valid.items(name) if cell is not None
            ]
        elif name in given.columns:
            assert [*block.items(name)] == [*valid.items(name)]
            for word in ("udp", "drop", "data"):
                assert block.equals(name, word).tolist() == valid.equals(name, word).tolist()


@pytest.mark.parametrize("table", TABLES)
@settings(max_examples=20)
@given(data=st.data())
def test_numbers_texts_and_lists_are_those_of_the_frame(table, data):
    columns = Columns(table, data.draw(handed(table)), 3, NAMES)
    for chosen in (None, slice(0, 1), np.flatnonzero(np.arange(columns.height) % 2)):
        assert_as_its_frame(columns, chosen)


@pytest.mark.parametrize("table", TABLES)
@settings(max_examples=20)
@given(data=st.data())
def test_the_frame_of_several_is_their_frames(table, data):
    parts = [Columns(table, data.draw(handed(table)), run, NAMES) for run in (5, 2)]
    together = frame(parts)
    assert together.equals(pl.concat([part.frame for part in parts]))
    assert together["run"].to_list() == [5] * parts[0].height + [2] * parts[1].height


def test_what_has_other_columns_is_not_joined():
    one: Mapping[str, Any] = synthetic.drops([1.0], [0])
    other = {name: values for name, values in synthetic.drops([2.0], [1]).items() if name != "flow"}
    apart = [Columns("events", one, 0, NAMES), Columns("events", other, 1, NAMES)]
    assert joined(apart) is None
    assert frame(apart)["flow"].to_list() == [0, None]


def test_no_metric_can_change_what_was_handed_over():
    columns = Columns("events", synthetic.drops([1.0], [0]), 0, NAMES)
    result = columns.numbers("time_s")
    assert result is not None
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 2.0
