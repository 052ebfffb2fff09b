"""The page on conformance names existing tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    line for line in (ROOT / "docs/concepts/conformance.md").read_text("utf-8").splitlines() if line.startswith("| ")
]
TEST = re.compile(r"`([a-z0-9_]{12,})`")


def test_every_test_of_the_page_exists():
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "crates").rglob("*.rs"))
    tests = set(re.findall(r"#\[test\]\n(?:\s*#\[[^\n]*\n)*\s*fn (\w+)\(", source))
    python = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests/oracle").glob("*.py"))
    tests |= set(re.findall(r"^def (test_\w+)\(", python, re.MULTILINE))
    named = {name for row in ROWS for name in TEST.findall(row.rsplit("|", 2)[1])}
    assert len(named) > 20
    assert named <= tests


def test_a_row_without_a_test_states_a_deviation():
    for row in ROWS:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4
        assert cells[2] or cells[3], row
