"""Slow readers of a scenario in its plan."""

from __future__ import annotations

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock.errors import ScenarioError

TEXT = f"""
duration = "10s"
{dumbbell("10Mbit", "40ms", "100p")}
"""


def test_a_slow_reader_is_complete_in_the_plan():
    flows = """
[tcp]
receive_window = "64KiB"
[[flows]]
slow_reader = { rate = "2Mbit" }
[[flows]]
slow_reader = { chunk = "32KiB", pause = { at = "2s", for = "500ms", every = "5s" } }
[[flows]]
"""
    rated, paused, prompt = (group.slow_reader for group in ac.loads(TEXT + flows).plan().groups)
    assert rated == {"rate_bps": 2e6, "chunk_bytes": 1448, "pause": None}
    pause = {"at_s": 2.0, "for_s": 0.5, "every_s": 5.0}
    assert paused == {"rate_bps": None, "chunk_bytes": 32768, "pause": pause}
    assert prompt is None


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("slow_reader = { rate = '1Mbit' }", "slow_reader: found an unlimited receive window; expected tcp.receive_w"),
        (
            "tcp = { receive_window = '64KB' }\nslow_reader = { chunk = '40KB' }",
            "slow_reader.chunk: found 40000 B; expected at most half of the receive window (64000 B)",
        ),
        (
            "tcp = { receive_window = '64KB' }\nslow_reader = { pause = { for = '2s', every = '2s' } }",
            "slow_reader.pause.every: found 2 s; expected more than for (2 s)",
        ),
    ],
)
def test_a_slow_reader_requires_a_limited_buffer_and_time_between_pauses(keys, expected):
    with pytest.raises(ScenarioError) as error:
        ac.loads(f"{TEXT}[[flows]]\n{keys}").plan()
    assert f": flows[0].{expected}" in str(error.value)
