"""Closed forms that entries set beside their runs."""

import importlib.util

import pytest

from ackclock.reproduce.entry import REPRODUCTIONS


def rule(entry_id):
    spec = importlib.util.spec_from_file_location("check", REPRODUCTIONS / entry_id / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kept", [0.5, 0.8, 0.875])
def test_one_stream_has_the_mean_of_a_sawtooth(kept):
    # between β C and C, rising evenly: (1 + β)/2
    assert rule("G.altman").altman(1, kept) == pytest.approx((1 + kept) / 2)


@pytest.mark.parametrize(("streams", "expected"), [(2, 6 / 7), (10, 30 / 31)])
def test_more_halving_streams(streams, expected):
    # β = 1/2: 1 − 1/(1 + 3 N)
    assert rule("G.altman").altman(streams, 0.5) == pytest.approx(expected)
