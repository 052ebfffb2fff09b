"""The guides against what they describe: tables of keys against the specs."""

from __future__ import annotations

import re
from pathlib import Path

from ackclock import algorithms

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)


def test_the_table_of_tcp_has_the_descriptions_of_the_specs():
    specs = {spec.name: spec for spec in algorithms.every() if spec.family == "stack"}
    text = (DOCS / "guides" / "scenario-file.md").read_text("utf-8")
    rows = [match for match in ROW.findall(text) if match[0] in specs["linux"].parameters]
    assert {name for name, *_ in rows} == set(specs["linux"].parameters)
    for name, *_, meaning in rows:
        parameter = specs["linux"].parameters[name]
        assert meaning.removesuffix(f" ({parameter.unit})") == parameter.description
