"""The dataset's tables are those that the engines in Rust fill."""

from __future__ import annotations

import polars as pl

from ackclock import _core
from ackclock.dataset.tables import TABLES

#: A value in Rust → what may hold it in the dataset, where counts may be fractions, and codes are words.
HOLDS = {
    "f64": {pl.Float64},
    "u64": {pl.UInt64, pl.Float64},
    "u32": {pl.UInt32, pl.Float64},
    "u8": {pl.Enum, pl.Categorical},
    "bool": {pl.Boolean},
    "String": {pl.String},
    "Vec<f64>": {pl.List(pl.Float64)},
    "Vec<u64>": {pl.List(pl.UInt64)},
}

#: Columns that engines fill with codes and the dataset with names.
NAMED = {("flows", "source"): "source_node", ("flows", "destination"): "destination_node"}

#: Columns that no engine fills: a run's number, and the CCA of a flow's group.
OWN = {"run", "congestion"}

#: Tables that no engine fills: those of captures, and all, with those of hosts and of two matched captures.
OF_CAPTURES = {"captured", "stalls", "windows", "segments", "acknowledgements", "levels"}
OTHERS = {*OF_CAPTURES, "datagrams", "datagram_rates", "clock_gaps", "disk", "delays", "placed"}

#: Columns of two matched captures only.
OF_JOINED = {"delays": {"error_s"}}


def test_engines_and_dataset_have_the_same_tables_and_columns() -> None:
    columns = {
        table: {NAMED.get((table, name), name) for name in fields if name not in OWN | OF_JOINED.get(table, set())}
        for table, fields in TABLES.items()
        if table not in OTHERS or table in _core.DATASET_TABLES
    }
    assert {table: set(found) for table, found in _core.DATASET_TABLES.items()} == columns


def test_a_column_of_the_dataset_holds_what_engines_give() -> None:
    for table, found in _core.DATASET_TABLES.items():
        for name, kind in found.items():
            if name not in NAMED.values():
                dtype = TABLES[table][name].dtype
                assert dtype in HOLDS[kind] or dtype.base_type() in HOLDS[kind], f"{table}.{name}: {kind} in {dtype}"


def test_tables_of_captures_have_what_the_analysis_finds() -> None:
    """`stalls` are events and `windows` samples; who has which address and port is one text."""
    found = {**_core.CAPTURE_TABLES, "captured": _core.CAPTURE_TABLES["flows"]}
    found |= {"stalls": _core.CAPTURE_TABLES["events"], "windows": _core.CAPTURE_TABLES["flow_samples"]}
    of_ends = {"run", "connection", "sender"}
    for table in OF_CAPTURES - {"levels"}:  # of a path, when its rate is known
        for name in set(TABLES[table]) - of_ends:
            dtype, kind = TABLES[table][name].dtype, found[table][name]
            assert dtype in HOLDS[kind] or dtype.base_type() in HOLDS[kind], f"{table}.{name}: {kind} in {dtype}"
