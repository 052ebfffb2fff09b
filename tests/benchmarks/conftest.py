"""Modules of `benchmarks/scoreboard`, which are scripts that import each other by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "scoreboard"


@pytest.fixture(scope="module")
def scoreboard() -> Iterator[Callable[[str], ModuleType]]:
    """Import a module of the folder by its name; after the tests of a file all are gone again."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield import_module
    finally:
        sys.path.remove(str(FOLDER))
        for file in FOLDER.glob("*.py"):
            sys.modules.pop(file.stem, None)
