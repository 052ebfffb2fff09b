"""`ackclock fit`: parameters that a run was made with come back within their intervals; what lacks them is told."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ackclock as ac
from ackclock.cli.program import application
from ackclock.errors import InputError
from ackclock.experiments import fit
from ackclock.experiments.fit import Event

#: Ten flows of unlike RTTs, so that rates tell them apart.
SCENARIO = """
duration = "{duration}s"
warmup = "20s"
seeds = [1]
[network]
topology = "dumbbell"
rate = "200Mbit"
rtt = {{ from = "20ms", to = "60ms" }}
queue = {{ discipline = "pfifo", limit = "0.5bdp" }}
[[flows]]
count = {flows}
congestion = "cubic"
start = {{ jitter = "1s" }}
[record]
interval = "50ms"
"""


@cache
def fitted_to(loss_weight: float, victims: str) -> fit.Fitted:
    """Return the fit to a fluid run with these parameters."""
    table = (
        f'[fluid]\nsynchronisation = {{ kind = "losses", loss_weight = {loss_weight} }}\nloss_assignment = {victims}\n'
    )
    plan = ac.loads(SCENARIO.format(duration=400, flows=10) + table).plan()
    return fit.fit({"known": ac.run(plan, engine="fluid")})


def weighted(rate: float, growth: float) -> str:
    return f'{{ kind = "weighted", rate = {rate}, growth = {growth} }}'


TRUE_PARAMETERS = [(0.6, 0.0, 0.0), (1.0, 2.0, 0.0), (1.5, -1.0, 1.0)]


@pytest.mark.parametrize(("loss_weight", "rate", "growth"), TRUE_PARAMETERS)
def test_true_parameters_are_recovered(loss_weight, rate, growth):
    found = fitted_to(loss_weight, weighted(rate, growth))
    assert found.events > 100
    assert found.growth is not None
    for truth, (best, low, high) in (
        (loss_weight, found.fluid_loss_weight),
        (rate, found.rate),
        (growth, found.growth),
    ):
        assert low <= truth <= high
        assert low < best < high
    low, high = found.fluid_loss_weight[1:]
    assert high / low < 1.3  # an interval that says something


def test_intervals_separate_parameters():
    low = fitted_to(0.6, weighted(0.0, 0.0))
    high = fitted_to(1.5, weighted(-1.0, 1.0))
    assert low.fluid_loss_weight[2] < high.fluid_loss_weight[1]
    assert low.growth is not None
    assert high.growth is not None
    assert low.growth[2] < high.growth[1]


# ---- the statistics, one by one ----


def event(logs: list[float], hit: list[int], packets: float = 3.0) -> Event:
    zeros = np.zeros(len(logs))
    return Event(packets, packets, len(logs), len(logs), np.array(hit, dtype=np.intp), np.array(logs), zeros)


def test_chances_of_all_orders_add_up_to_one():
    """Two of 4 flows in order make 12 orders; and the first place goes by weight."""
    logs = [0.0, 1.0, -0.5, 2.0]
    chances = {
        order: math.exp(fit._placed(np.array(logs), event(logs, list(order))))
        for order in itertools.permutations(range(4), 2)
    }
    assert sum(chances.values()) == pytest.approx(1)
    first = sum(chance for order, chance in chances.items() if order[0] == 3)
    assert first == pytest.approx(math.exp(2) / sum(map(math.exp, logs)))


def test_the_number_hit_gives_rho_in_closed_form():
    """With 20 flows and D = 10, and hits that are never 1, the best ρ solves mean share = 1 − exp(−ρ/2)."""
    events = [event([0.0] * 20, list(range(count)), 10.0) for count in (6, 8, 10, 7, 9) * 4]
    best, low, high = fit.loss_weight(events, np.full(20, 10.0))
    assert best == pytest.approx(-2 * math.log(1 - 0.4), rel=1e-3)
    assert low < best < high


def test_pauses_fall_into_two_groups():
    pauses = np.array([1e-4] * 99 + [0.2, 0.5, 0.9] * 10 + [20.0, 50.0] * 10)
    found = fit.gap(pauses)
    assert found is not None
    assert found[1:] == pytest.approx((0.9, 20.0))
    assert fit.gap(np.full(50, 3.0)) is None


# ---- what is written ----


def test_what_is_written_is_a_scenario_s_table(tmp_path: Path):
    found = fitted_to(1.0, weighted(2.0, 0.0))
    plan = ac.loads(SCENARIO.format(duration=30, flows=10) + found.toml(["x"])).plan()
    options = plan.options["fluid"]
    assert options["synchronisation"]["loss_weight"] == pytest.approx(found.fluid_loss_weight[0], rel=1e-3)
    assert options["loss_assignment"]["rate"] == pytest.approx(found.rate[0], rel=1e-3)
    assert plan.options["meanfield"]["loss_rate_exponent"] == pytest.approx(found.loss_rate_exponent[0], rel=1e-3)
    told = json.loads(found.as_json())
    assert list(told["fluid_loss_weight"].values()) == list(found.fluid_loss_weight)


# ---- what has nothing to fit ----


def rejection(folder: Path, *options: str) -> str:
    done = CliRunner().invoke(application, ["fit", str(folder), *options])
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def put(tmp_path: Path, engine: str, flows: int = 10, duration: int = 30, more: str = "") -> Path:
    plan = ac.loads(SCENARIO.format(duration=duration, flows=flows) + more).plan()
    folder = tmp_path / "result"
    ac.run(plan, engine=engine).write(folder)
    return folder


def test_few_events_are_reported(tmp_path: Path):
    assert "expected 10 or more" in rejection(put(tmp_path, "fluid", duration=22))


def test_a_single_flow_is_reported(tmp_path: Path):
    folder = put(tmp_path, "fluid", flows=1, duration=400)
    assert "found one flow" in rejection(folder)


def test_an_assumption_is_not_fitted(tmp_path: Path):
    assert "meanfield" in rejection(put(tmp_path, "meanfield", flows=2, duration=21))


def test_smooth_losses_are_reported(tmp_path: Path):
    assert "losses one by one" in rejection(put(tmp_path, "fluid", more='[fluid]\nsynchronisation = "none"\n'))


def test_a_missing_result_is_reported(tmp_path: Path):
    assert str(tmp_path) in rejection(tmp_path)


def test_several_results_and_a_file(tmp_path: Path):
    folder = put(tmp_path, "fluid", duration=200)
    out = tmp_path / "learnt.toml"
    done = CliRunner().invoke(application, ["fit", str(folder), str(folder), "--out", str(out)])
    assert done.exit_code == 0
    assert "[meanfield]" in out.read_text()
    with pytest.raises(InputError, match="expected 10"):
        fit.fit({})
