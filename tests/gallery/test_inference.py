"""Inference of what a paper does not print: the posterior of a problem with a known answer, and its files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from ackclock.cli.program import application
from ackclock.errors import InputError
from ackclock.gallery import claims, inference
from ackclock.gallery.inference import Inference, Parameter, Points

BRAUD = next(paper for paper in claims.papers() if paper.id == "braud2016")

#: A table of a paper's file.
TABLE: Mapping[str, object] = {
    "name": "a line",
    "entries": ["R6.t2"],
    "tolerance": 0.05,
    "parameter": [{"name": "queue", "key": "network.up.queue.limit", "low": 5, "high": 50, "unit": "p"}],
}


def of(tolerance: float) -> Inference:
    """Two parameters between 0 and 10 without entries."""
    names = ("x", "y")
    parameters = [Parameter(name, f"network.{name}", 0.0, 10.0, integer=False) for name in names]
    return Inference("known", [], parameters, tolerance)


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only row is x: ln(ours / printed) = x − 4, whatever y is."""

    def residuals(of: Inference, point: Points) -> dict[str, float]:
        return {"row": of.parameters[0].value(point[0]) - 4}

    monkeypatch.setattr(inference, "_residuals", residuals)


def test_the_posterior_is_uniform_where_the_rows_are_near(plane: None) -> None:
    """|x − 4| ≤ 0.5 fits: the median is 4 and the interval 3.525 to 4.475; y stays as uniform as it was, 0.25 to 9.75.

    The effective number of draws is above 100, so a quantile of a uniform spread has an error of 4 % of it at most.
    """
    posterior = inference.infer(of(0.5), 1000)
    weights = posterior.weights[posterior.fitting]
    assert weights.sum() ** 2 / np.sum(weights**2) > 100
    assert posterior.interval(0) == pytest.approx((4.0, 3.525, 4.475), abs=0.12)
    assert posterior.interval(1) == pytest.approx((5.0, 0.25, 9.75), abs=1.2)


def test_the_weights_estimate_the_share_of_the_prior_that_fits(plane: None) -> None:
    """A tenth of the range of x fits, however many of the draws are made there."""
    posterior = inference.infer(of(0.5), 1000)
    assert posterior.fitting.mean() > 0.3
    assert posterior.weights[posterior.fitting].sum() == pytest.approx(0.1, abs=0.03)


def test_nothing_fits_if_no_parameters_are_near(plane: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "_residuals", lambda of, point: {"row": 1.0 + point[0]})
    posterior = inference.infer(of(0.5), 100)
    assert not posterior.fits
    assert not posterior.fitting.any()
    assert posterior.distances[posterior.nearest] == min(posterior.distances)


def test_the_same_draws_give_the_same_posterior(plane: None) -> None:
    one, other = (inference.infer(of(0.5), 100) for _ in range(2))
    assert np.array_equal(one.values, other.values)
    assert np.array_equal(one.weights, other.weights)


def test_the_queue_of_table_6_2_is_not_the_printed_one() -> None:
    """280 ms at 800 kb/s are 15 packets of 1500 B beyond a path of 52 ms, on average: fewer than 30 fit, not 120."""
    (known,) = inference.inferences(BRAUD)
    posterior = inference.infer(known, 60)
    queue_p = posterior.values[posterior.fitting, 0]
    assert len(queue_p) > 0
    assert min(queue_p) > 15
    assert max(queue_p) < 30


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"colour": 1}, 'infer a line: found the key "colour"; expected of name, entries'),
        ({"tolerance": None}, "infer a line: found no tolerance; expected it"),
        ({"parameter": [{"name": "q", "key": "k", "low": 1}]}, "parameter q: found no high; expected it"),
        (
            {"parameter": [{"name": "q", "key": "k", "low": 3, "high": 2}]},
            "found low = 3 and high = 2; expected low below",
        ),
    ],
)
def test_mistakes_in_a_table_are_one_line(changes: Mapping[str, object], expected: str, tmp_path: Path) -> None:
    table = {key: value for key, value in {**TABLE, **changes}.items() if value is not None}
    paper = claims.Paper(BRAUD.path, "", [], 2016, "", BRAUD.entries, [], [], [table])
    with pytest.raises(InputError, match=expected.replace("(", r"\(")):
        inference.inferences(paper)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nobody1900", 'PAPER: found "nobody1900"; expected a paper of the gallery, such as braud2016'),
        ("kumar2010", "PAPER: found kumar2010, whose file has no table [[infer]]; expected another paper"),
    ],
)
def test_a_paper_without_a_table_is_bad_input(name: str, expected: str) -> None:
    result = CliRunner().invoke(application, ["infer", name])
    assert result.exit_code == 2
    assert expected in " ".join(result.output.split())


def test_json_has_the_intervals(plane: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "inferences", lambda paper: [of(0.5)])
    result = CliRunner().invoke(application, ["infer", "braud2016", "--draws", "100", "--json"])
    found = json.loads(result.output)
    assert found["parameters"]["x"]["low"] < 4 < found["parameters"]["x"]["high"]
    assert math.isclose(found["nearest"]["distance"], abs(found["nearest"]["log_ratios"]["row"]))
