"""What the tests of controls share: a control that has a card and nothing else."""

from __future__ import annotations

import dataclasses

import pytest

from ackclock import algorithms


@pytest.fixture
def card_alone():
    """A card `mine`, as Reno's with another name."""
    yield from brought(dataclasses.replace(algorithms.card("congestion", "reno"), name="mine", linux=None))


def brought(card):
    """A card for as long as a test lasts."""
    algorithms.bring(card)
    yield card
    del algorithms._BROUGHT[card.family, card.name]
    algorithms.names.cache_clear()
    algorithms.card.cache_clear()
