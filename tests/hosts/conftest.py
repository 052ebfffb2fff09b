"""A testbed for the tests of a module, and hosts that are as before after each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import testbeds
from testbeds import Testbed


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    with tempfile.TemporaryDirectory(prefix="ackclock-testbed-") as name:
        Path(name).chmod(0o755)  # a login without root has to reach its TMPDIR
        with testbeds.testbed(Path(name)) as made:
            yield made


@pytest.fixture
def unchanged(bed: Testbed) -> Iterator[None]:
    """Whatever the test does, every host is as before in the end."""
    before = bed.state()
    yield
    assert bed.remaining(before) == {}
