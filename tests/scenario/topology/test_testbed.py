"""The testbed as a table of a scenario, and what other engines make of it."""

from __future__ import annotations

import pytest
from changed import changed
from small_networks import a_testbed, host_of_testbed, router_of_testbed

import ackclock as ac
from ackclock import engines

ROUTER = router_of_testbed("root@r")
HOSTS = host_of_testbed("a", "sender", "10.1.0.2"), ROUTER, host_of_testbed("b", "receiver", "10.2.0.2")
TEXT = f"""
duration = "2s"
{a_testbed(*HOSTS)}\
[[flows]]
congestion = "reno"
"""


def replaced(*pairs: tuple[str, str]) -> str:
    return changed(TEXT, *pairs)


def problem(*pairs: tuple[str, str]) -> str:
    """The one mistake, without its place in the file."""
    with pytest.raises(ac.ScenarioError) as caught:
        ac.loads(replaced(*pairs)).plan()
    (found,) = caught.value.problems
    return f"{found.key}: found {found.found}; expected {found.expected}"


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([('role = "sender"', 'role = "receiver"')], 'network.hosts: found none; expected a host with role = "sender"'),
        (
            [('topology = "testbed"', 'topology = "testbed"\nexisting_path = true')],
            'network.hosts: found 1; expected hosts with role = "router": none, with existing_path = true',
        ),
        (
            [('name = "b"', 'name = "a"')],
            'network.hosts: found "a" twice; expected hosts that differ in name',
        ),
        (
            [('data = "10.2.0.2"', 'data = "10.2.0"')],
            'network.hosts[2].data: found "10.2.0"; expected an IPv4 address, such as "10.1.0.1"',
        ),
        (
            [('data = "10.2.0.2"\n', "")],
            "network.hosts[2].data: found nothing; expected data, which a receiver has",
        ),
        (
            [('to_senders = "eth1"', 'to_senders = "-e"')],
            'network.hosts[1].to_senders: found "-e"; expected the name of a network interface, such as "eth1"',
        ),
        (
            [('address = "b"', 'address = "-oProxyCommand=x"')],
            'network.hosts[2].address: found "-oProxyCommand=x"; expected a host as ssh knows it, such as "alice" or '
            '"root@alice.example.net"',
        ),
        (
            [('rtt = "20ms"\n', ""), ('"20p"', '"1bdp"')],
            "network.queue.limit: found 1bdp; expected packets or bytes, or network.rtt beside it",
        ),
        (
            [('rate = "10Mbit"', 'rate = "measured"')],
            'network.rate: found "measured"; expected a rate, which the router gets; a path\'s is measured where it is '
            "left as it is (existing_path = true)",
        ),
        (
            [('rtt = "20ms"', 'rtt = "guessed"')],
            'network.rtt: found "guessed"; expected a time such as 20ms: a number and its unit, or "measured"',
        ),
    ],
)
def test_mistakes(pairs: list[tuple[str, str]], said: str):
    assert problem(*pairs) == said


def test_what_is_given_is_a_dumbbell_for_other_engines():
    dumbbell = replaced(("".join(HOSTS), ""), ('topology = "testbed"', 'topology = "dumbbell"'))
    ours, other = (ac.run(ac.loads(text)).flows for text in (TEXT, dumbbell))
    assert ours.equals(other)


def test_an_omitted_delay_is_left_to_the_hosts():
    plan = ac.loads(replaced(('rtt = "20ms"\n', ""))).plan()
    (reason,) = engines.unsupported(engines.engine("packet"), plan)
    assert reason.what == "a testbed whose delay is not said (network.rtt)"
    assert reason.available_in == ("linux",)
    linux = engines.engine("linux")
    assert linux.unsupported(plan) == []
    (reason,) = linux.unsupported(ac.loads(replaced(('rtt = "20ms"\n', ""))).on("guest").plan())
    assert reason.what == 'a testbed whose delay is not said (network.rtt), with kernel = "guest" or "live"'


def test_measured_delays_belong_to_the_hosts_without_a_split():
    text = measured_path()
    plan = ac.loads(text).plan()
    assert plan.options["testbed"]["measure"] == ["rate", "rtt"]
    assert plan.options["testbed"]["rtt_s"] is None
    whats = [reason.what for reason in engines.unsupported(engines.engine("packet"), plan)]
    assert "a path that is measured" in whats
    assert engines.engine("linux").unsupported(plan) == []
    share = '[[traffic]]\nkind = "poisson"\nload = 0.5\nsize = "10KB"\ncongestion = "reno"\n'
    with pytest.raises(ac.ScenarioError, match="load: found a load; expected rate = .*, for network.rate is measured"):
        ac.loads(text + share)


def measured_path() -> str:
    """The testbed without its router, and with nothing said of what lies between."""
    given = ('rate = "10Mbit"', 'existing_path = true\nrate = "measured"'), ('rtt = "20ms"', 'rtt = "measured"')
    return replaced((ROUTER, ""), *given)


def test_the_kernels_of_a_testbed_are_its_hosts_unless_another_is_named():
    loaded = ac.loads(TEXT)
    assert loaded.plan().options["linux"]["kernel"] == "hosts"
    assert loaded.on("guest").plan().options["linux"]["kernel"] == "guest"
    assert loaded.on(None, "/x").plan().options["testbed"]["ssh_config"] == "/x"


def test_hosts_without_a_testbed_are_rejected():
    dumbbell = replaced(("".join(HOSTS), ""), ('topology = "testbed"', 'topology = "dumbbell"'))
    with pytest.raises(ac.InputError, match='found "hosts" without a testbed; expected network.topology = "testbed"'):
        engines.engine("linux").unsupported(ac.loads(dumbbell).on("hosts").plan())
