"""Tables that a scenario chooses by a word: their modules are imported when it does."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from ackclock.scenario.keys import Tables
from ackclock.scenario.scenario import json_schema
from ackclock.scenario.topology import TOPOLOGIES
from ackclock.scenario.traffic import KINDS


@pytest.mark.parametrize(("key", "tables"), [("topology", TOPOLOGIES), ("kind", KINDS)], ids=["topology", "kind"])
def test_each_word_is_that_of_its_table(key: str, tables: Tables):
    assert {get_args(table.model_fields[key].annotation)[0]: table for table in tables.values()} == dict(tables)


@pytest.mark.parametrize("tables", [TOPOLOGIES, KINDS], ids=["topology", "kind"])
def test_the_schema_has_them_all(tables: Tables):
    assert {table.__name__ for table in tables.values()} <= set(json_schema()["$defs"])


def test_no_other_module_is_imported_than_that_of_the_word():
    program = """
import sys
from ackclock.scenario.topology import TOPOLOGIES
assert TOPOLOGIES["y"].__name__ == "Y" and "star" not in TOPOLOGIES and len(TOPOLOGIES) == 9
print(*sorted(name for name in sys.modules if name.endswith((".multi_bottleneck", ".graph", ".dumbbell"))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "ackclock.scenario.topology.multi_bottleneck\n"
