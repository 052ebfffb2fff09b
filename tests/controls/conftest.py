"""What the tests of controls share: a control that has a card and nothing else."""

from __future__ import annotations

import dataclasses

import pytest

from ackclock import catalog


@pytest.fixture
def card_alone():
    """A card `mine`, as Reno's with another name."""
    yield from brought(dataclasses.replace(catalog.card("congestion", "reno"), name="mine", linux=None))


def brought(card):
    """A card for as long as a test lasts."""
    catalog.bring(card)
    yield card
    del catalog._BROUGHT[card.family, card.name]
    catalog.names.cache_clear()
    catalog.card.cache_clear()
