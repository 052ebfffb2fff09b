"""Fixtures of all tests: the modules of this folder (`synthetic`) can be imported; the guest of the engine linux."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# How long an example takes depends on what else the machine does, and is never what a property is about.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def guest_kernel() -> Path:
    """The guest that a run takes. Without one the test is skipped by name; where `CI` is set, it fails."""
    from ackclock.engines.linux.kernel import cache

    if kept := cache.taken(cache.every()):
        return kept.kernel
    missing = "no guest kernel: run `make kernel`"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)
