"""Silences whose causes are imposed on captures of the packet engine, and what the analysis says of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from ackclock.reproductions import impose, pcap

NAMES = ("stalls",)


@pytest.fixture(scope="module")
def tools(scoreboard):
    return {name: scoreboard(name) for name in NAMES}


@pytest.mark.parametrize(("number", "flows"), [(0, 1), (4, 5)])
def test_each_cause_is_distinguished_from_the_others(tools, tmp_path, number, flows):
    case = replace(tools["stalls"].drawn(number), rate_bps=3e6, begin_s=2.1, long_s=1.2)
    assert case.flows == flows
    found: dict[str, Counter[str]] = {}
    for cause, place, classes in tools["stalls"].scored(case, tmp_path):
        assert classes or flows == 1, f"nothing was told of {cause} at the {place}"
        for true, told in classes:
            found.setdefault(true, Counter())[told] += 1
    assert set(found) <= set(tools["stalls"].CLASSES)
    for true, told in found.items():
        right = sum(told[name] for name in tools["stalls"].CLASSES[true])
        assert right >= 0.95 * told.total(), f"{true}: {told}"


def test_what_is_imposed_is_what_such_a_capture_shows(tools, tmp_path):
    """A host's silence: nothing for as long, no packet lost, and the sender's clock goes on or stands."""
    stalls = tools["stalls"]
    case = replace(stalls.drawn(0), rate_bps=3e6)
    path, _ = stalls.made(tmp_path / "case", stalls.text(case))
    records = pcap.read(path)
    at_ns, by_ns = 2_000_000_000, 700_000_000
    for stood in (False, True):
        later = impose.in_order(impose.host(records, at_ns, by_ns, stood=stood))
        assert len(later) == len(records)
        assert not [one for one in later if at_ns <= one.time_ns < at_ns + by_ns]
        before, after = (
            [one for one in later if one.from_sender and (one.time_ns < at_ns) == is_before]
            for is_before in (True, False)
        )
        moved_ms = impose.stamps(after[0])[0] - impose.stamps(before[-1])[0]
        passed_ms = (after[0].time_ns - before[-1].time_ns) / 1e6
        assert abs(moved_ms - (passed_ms - 700 if stood else passed_ms)) <= 2
