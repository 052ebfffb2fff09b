"""Fixtures: a congestion control algorithm that has a spec and no code."""

from __future__ import annotations

import dataclasses

import pytest

from ackclock import algorithms


@pytest.fixture
def spec_without_code():
    """Return a spec `mine`, a copy of Reno's with another name."""
    yield from registered(dataclasses.replace(algorithms.spec("congestion", "reno"), name="mine", linux=None))


def registered(spec):
    """Register a spec for the time of a test."""
    algorithms.bring(spec)
    yield spec
    del algorithms._USER_SUPPLIED[spec.family, spec.name]
    algorithms.names.cache_clear()
    algorithms.spec.cache_clear()
