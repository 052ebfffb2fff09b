"""Captures with messages of small writes: `doctor` names Nagle's algorithm where a delayed ACK held some back."""

from __future__ import annotations

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import capture
from ackclock.capture.diagnosis import diagnose
from ackclock.capture.findings import Cause

BY_MESSAGE = 'slow_reader = { chunk = "200B" }'
NODELAY = ", nodelay = true"


def diagnosis(folder, vantage, rtt, stack="linux", reader=BY_MESSAGE, more="", every="100ms"):
    text = f"""
duration = "10s"
{dumbbell("20Mbit", rtt, "100p")}
[tcp]
stack = "{stack}"
receive_window = "64KiB"
[[flows]]
congestion = "cubic"
writes = {{ size = "100B", count = 2, every = "{every}"{more} }}
{reader}
[record]
pcap = ["senders", "receivers"]
"""
    ac.run(ac.loads(text).plan(), captures=folder)
    (file,) = folder.glob(f"*{vantage}*")
    return diagnose(capture.read([file]).analysis)


def nagle(found):
    return [finding for finding in found.findings if "Nagle's algorithm" in finding.sentence]


@pytest.mark.parametrize("vantage", ["senders", "receivers"])
@pytest.mark.parametrize("rtt", ["5ms", "20ms", "25ms"])
def test_a_small_write_that_waits_for_a_delayed_ack_is_nagles(tmp_path, vantage, rtt):
    found = diagnosis(tmp_path, vantage, rtt)
    (finding,) = nagle(found)
    assert found.verdict is Cause.APPLICATION
    assert finding.evidence["waits"] == pytest.approx(92, abs=2)
    assert 0.04 <= finding.evidence["seconds"] / finding.evidence["waits"] < 0.05


@pytest.mark.parametrize("vantage", ["senders", "receivers"])
@pytest.mark.parametrize("rtt", ["5ms", "20ms", "80ms"])
@pytest.mark.parametrize(
    "other",
    [
        {"more": NODELAY},
        {"reader": ""},
        {"stack": "rfc", "reader": "", "more": NODELAY},
    ],
    ids=["nodelay", "prompt ACKs", "nodelay and the delayed ACKs of RFC 1122"],
)
def test_otherwise_nothing_waits_for_a_delayed_ack(tmp_path, vantage, rtt, other):
    found = diagnosis(tmp_path, vantage, rtt, **other)
    assert found.verdict is Cause.APPLICATION and not nagle(found)
