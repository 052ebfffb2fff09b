"""The model in R4.4's rule: the state machine of Braud 2016, section 4.3."""

from __future__ import annotations

import importlib.util

import pytest

from ackclock.reproduce.entry import REPRODUCTIONS


def model(down_mbps: float, up_mbps: float, down_kb: float, up_kb: float) -> float:
    spec = importlib.util.spec_from_file_location("r44", REPRODUCTIONS / "R4.4" / "check.py")
    rule = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rule)
    return rule.model((down_mbps * 125e3, up_mbps * 125e3), (down_kb * 1e3, up_kb * 1e3))


@pytest.mark.parametrize(
    ("line", "ratio"),
    [
        ((10, 1, 150, 75), 2.78),
        ((10, 1, 150, 105), 1.98),
        ((10, 2, 150, 36), 4.26),
        ((20, 4, 300, 72), 4.31),
        ((10, 5, 150, 75), 2.01),
        ((10, 5, 150, 36), 2.58),
    ],
)
def test_it_gives_what_an_independent_implementation_gives(line, ratio):
    """To 1 %; the values were computed beforehand from the same equations, with simultaneous losses always."""
    assert model(*line) == pytest.approx(ratio, rel=0.01)


def test_it_does_not_depend_on_the_scale():
    """Twice the rates and queues, at an RTT of many packets: the same ratio."""
    assert model(20, 4, 300, 72) == pytest.approx(model(10, 2, 150, 36), rel=0.02)
