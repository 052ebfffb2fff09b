"""Fixtures: a congestion control algorithm that has a spec and no code."""

from __future__ import annotations

import dataclasses

import pytest

from ackclock import algorithms


@pytest.fixture
def spec_without_code():
    """Return a spec `mine`, a copy of Reno's with another name."""
    yield from registered(dataclasses.replace(algorithms.card("congestion", "reno"), name="mine", linux=None))


def registered(card):
    """Register a spec for the time of a test."""
    algorithms.bring(card)
    yield card
    del algorithms._USER_SUPPLIED[card.family, card.name]
    algorithms.names.cache_clear()
    algorithms.card.cache_clear()
