"""DS codepoints of flows: from the scenario to the engines, and the hosts that a kernel's addresses tell apart."""

from __future__ import annotations

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import engines
from ackclock.engines.linux import network
from ackclock.errors import ScenarioError
from ackclock.scenario.keys import CODEPOINTS

TEXT = f"""\
duration = "10s"
{dumbbell("10Mbit", "20ms", "50p")}
[[flows]]
name = "first"
congestion = "cubic"
DSCP
[[flows]]
name = "second"
congestion = "cubic"
[[traffic]]
kind = "udp"
packet = "100B"
rate = "10/s"
dscp = "ef"
"""


def plan(dscp: str = "", queue: str = '"pfifo", limit = "50p"') -> ac.Plan:
    return ac.loads(TEXT.replace("DSCP", dscp).replace('"pfifo", limit = "50p"', queue)).plan()


@pytest.mark.parametrize(("name", "value"), [("cs0", 0), ("le", 1), ("cs1", 8), ("af41", 34), ("va", 44), ("EF", 46)])
def test_codepoints_have_the_values_of_the_rfcs(name, value):
    """RFC 2474 section 4.2.2.2, RFC 8622 section 1, RFC 2597 section 6, RFC 5865 section 6, RFC 3246 section 2.7."""
    assert [group.dscp for group in plan(f'dscp = "{name}"').groups] == [value, 0, 46]


def test_the_names_are_those_of_the_registry():
    assert len(CODEPOINTS) == len(set(CODEPOINTS.values())) == 8 + 12 + 3
    assert all(0 <= value < 64 for value in CODEPOINTS.values())


@pytest.mark.parametrize("given", ['dscp = "EF1"', "dscp = 46", 'dscp = "af44"'])
def test_other_codepoints_are_rejected(given):
    with pytest.raises(ScenarioError, match=r"flows\[0\].dscp: found .*; expected"):
        plan(given)


def test_engines_without_packets_reject_them():
    reasons = [str(reason) for reason in engines.unsupported(engines.engine("fluid"), plan('dscp = "ef"'))]
    assert any("DS codepoints (dscp)" in reason for reason in reasons)
    assert engines.unsupported(engines.engine("packet"), plan('dscp = "ef"')) == []


def test_the_kernels_prio_reads_them_too():
    (reason,) = engines.unsupported(engines.engine("linux"), plan('dscp = "ef"', '"prio", limit = "50p"'))
    assert 'DS codepoints (dscp) with queue discipline "prio"' in str(reason)


@pytest.mark.parametrize(("queue", "hosts"), [('"fq_codel"', 1), ('"cake"', 2)])
def test_where_a_qdisc_distinguishes_hosts_each_group_has_addresses(queue, hosts):
    laid = network.lay(plan(queue=queue))
    assert len({ends.source.address for ends in laid.flows}) == hosts
    assert len({ends.destination.address for ends in laid.flows}) == hosts
