"""Messages of a scenario in its plan."""

from __future__ import annotations

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock.errors import ScenarioError

TEXT = f"""
duration = "10s"
{dumbbell("10Mbit", "40ms")}
[[flows]]
"""


def test_messages_are_complete_in_the_plan():
    flows = """
writes = { size = "100B", every = "100ms" }
[[traffic]]
kind = "once"
size = "10KB"
writes = { size = "4KB", count = 3, every = "2s", nodelay = true }
[[flows]]
"""
    small, large, none = (group.writes for group in ac.loads(TEXT + "count = 1\n" + flows).plan().groups[:3])
    assert small == {"size_bytes": 100, "count": 1, "every_s": 0.1, "nodelay": False}
    assert none == {"size_bytes": 4000, "count": 3, "every_s": 2.0, "nodelay": True}
    assert large is None


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("writes = { size = '100B' }", "writes.every: found nothing"),
        ("writes = { size = '100B', every = '0s' }", "writes.every: found"),
        ("writes = { size = '100B', every = '1s', count = 0 }", "writes.count: found 0"),
        (
            "application_rate = '1Mbit'\nwrites = { size = '100B', every = '1s' }",
            "writes: found both; expected either writes or an application_rate",
        ),
    ],
)
def test_messages_need_a_size_and_an_interval_and_have_no_rate(keys, expected):
    with pytest.raises(ScenarioError) as error:
        ac.loads(TEXT + keys).plan()
    assert f": flows[0].{expected}" in str(error.value)
