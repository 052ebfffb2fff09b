"""Every scenario that comes with ackclock runs: a look at each, as `ackclock run --quick` takes it.

Of a sweep every point has a plan, and the look is at the first.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ackclock.experiments import runner
from ackclock.scenario import planning

SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios").glob("*.toml"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_short_run_of_each(path):
    plans = [point.plan for point in planning.load(path).points()]
    plan = runner.quick(plans[0])
    data = runner.run(plan)
    assert data.flows["run"].n_unique() == 1
    assert data.flows["delivered_bytes"].sum() > 0
    assert data.links["departed_p"].sum() > 0
    assert data.flows.height >= len(plan.flows)
    begun = set(data.flows["group"].to_list())
    expected = {flow.group for flow in plan.flows} | {traffic.group for traffic in plan.traffic}
    assert begun >= {group for group in expected if starts(plan, group) < plan.duration_s}


def starts(plan, group):
    """When the first transfer of a group may begin, in seconds."""
    times = [flow.start_s for flow in plan.flows if flow.group == group]
    return min(times + [traffic.workload["start_s"] for traffic in plan.traffic if traffic.group == group])
