"""Candidates of a search."""

import itertools

import pytest

from ackclock.errors import InputError
from ackclock.experiments.search.candidates import tried, vary


def test_a_range_rises_by_a_tenth_and_has_both_ends():
    found = vary("limit=0.01bdp..2bdp")
    assert found.key == "network.queue.limit"
    assert found.ordered
    assert (found.values[0], found.values[-1]) == ("0.01bdp", "2bdp")
    numbers = [float(value.removesuffix("bdp")) for value in found.values]
    ratios = [after / before for before, after in itertools.pairwise(numbers)]
    assert 1.07 < min(ratios) <= max(ratios) < 1.13


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("network.rtt=10ms..100ms/3", "network.rtt", ("10ms", "31.6ms", "100ms")),
        ("limit=0.5bdp..2 bdp/3", "network.queue.limit", ("0.5bdp", "1bdp", "2bdp")),
        ("flows=1..4/4", "flows[0].count", (1, 2, 3, 4)),
        ("a.b=0ms..10ms/3", "a.b", ("0ms", "5ms", "10ms")),
        ("rate=10Mbit,20Mbit", "network.rate", ("10Mbit", "20Mbit")),
        ("limit=1p..10p/3", "network.queue.limit", ("1p", "3p", "10p")),
        ("flows=5, 10", "flows[0].count", (5, 10)),
        ("a.b=0.5,0.7", "a.b", (0.5, 0.7)),
        ("a.b=true,false", "a.b", (True, False)),
        (
            'congestion={kind="cubic",beta=0.5},reno',
            "flows[0].congestion",
            ({"kind": "cubic", "beta": 0.5}, "reno"),
        ),
    ],
)
def test_ranges_and_lists(text, key, values):
    found = vary(text)
    assert (found.key, found.values) == (key, values)
    assert found.ordered == (".." in text)


@pytest.mark.parametrize(
    "text", ["limit", "=1..2", "limit=", "limit=2bdp..1bdp", "limit=1p..2bdp", "limit=1bdp..2bdp/1", "limit=1bdp,1bdp"]
)
def test_an_invalid_range_is_reported_in_one_line(text):
    with pytest.raises(InputError, match=r"^--vary: found .*; expected .*$"):
        vary(text)


def test_bare_names_are_aqms_or_ccas():
    assert tried("pfifo,codel", {}).key == "network.queue"
    assert tried("cubic, bbr", {}).key == "flows[0].congestion"
    assert tried("linux,freebsd", {}).key == "tcp.stack"
    with pytest.raises(InputError, match="not a mixture"):
        tried("codel,cubic", {})
    with pytest.raises(InputError, match='expected "codel"'):
        tried("codl", {})
    with pytest.raises(InputError, match="as `ackclock show` lists them$"):
        tried("xyz", {})


def test_a_qdisc_has_its_own_limit_unless_the_scenario_gives_one_for_it():
    own = {"discipline": "red", "limit": "1bdp", "ecn": True}
    assert tried("red,codel,pfifo", {"network": {"queue": own}}).values == (
        own,
        {"discipline": "codel"},
        {"discipline": "pfifo", "limit": "1bdp"},  # it has no default
    )
    varied = tried("red,codel,pfifo", {"network": {"queue": own}}, limits=False)
    assert varied.values == ({"discipline": "red", "ecn": True}, {"discipline": "codel"}, {"discipline": "pfifo"})
