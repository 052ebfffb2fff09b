"""Candidates of a search."""

import itertools

import pytest

from ackclock.errors import InputError
from ackclock.experiments.search import candidates
from ackclock.experiments.search.candidates import tried, vary
from ackclock.scenario import planning


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


DSL = """\
name = "DSL"
duration = "4s"
[network]
topology = "asymmetric"
down = { rate = "20Mbit", delay = "15ms", queue = { discipline = "pfifo", limit = "100p" } }
up = { rate = "2Mbit", delay = "15ms", queue = { discipline = "pfifo", limit = "100p" } }
[[flows]]
name = "bulk"
congestion = "cubic"
"""


@pytest.mark.parametrize(
    ("varied", "names", "expected"),
    [
        (
            [],
            "pfifo,codel",
            """--candidates: found no network.queue in this scenario; expected network.down.queue or network.up.queue, \
such as --vary 'network.down.queue=pfifo,codel'""",
        ),
        (
            ["limit=10p..100p"],
            None,
            """--vary: found no network.queue.limit in this scenario; expected network.down.queue.limit or \
network.up.queue.limit, such as --vary 'network.down.queue.limit=10p..100p'""",
        ),
    ],
)
def test_a_network_with_several_queues_names_them(varied, names, expected):
    content = planning.loads(DSL, "dsl.toml").source.toml()
    with pytest.raises(InputError) as error:
        candidates.axes(varied, names, content)
    assert str(error.value) == expected
    example = expected.partition("--vary '")[2].rstrip("'")
    (found,) = candidates.axes([example], None, content)  # what it suggests is accepted
    assert len(found.values) > 1


def test_qdiscs_of_a_direction_are_tried_by_name():
    content = planning.loads(DSL, "dsl.toml").source.toml()
    (found,) = candidates.axes(["network.up.queue=pfifo,codel"], None, content)
    assert found.values == ({"discipline": "pfifo", "limit": "100p"}, {"discipline": "codel"})


def test_a_fifo_that_can_take_no_limit_is_written_as_a_table():
    content = {"network": {"queue": {"discipline": "fq_codel"}}}
    with pytest.raises(InputError, match=r'expected a table, as \{ discipline = "pfifo", limit = "1bdp" \}'):
        candidates.tried("pfifo,fq_codel", content)
    (found, _) = candidates.tried('{ discipline = "pfifo", limit = "1bdp" },fq_codel', content).values
    assert found["limit"] == "1bdp"


def test_algorithms_of_media_are_tried_in_the_first_media():
    content = {"network": {"queue": {}}, "traffic": [{"kind": "udp"}, {"kind": "media"}]}
    assert candidates.tried("gcc,nada", content).key == "traffic[1].congestion"
    with pytest.raises(InputError, match='found no .* with kind = "media"'):
        candidates.tried("gcc,nada", {"network": {"queue": {}}})


def test_generated_transfers_have_their_algorithm_in_their_table():
    content = {"network": {"queue": {}}, "traffic": [{"kind": "poisson"}]}
    with pytest.raises(InputError, match=r"such as --try 'traffic\[0\]\.congestion=cubic,bbr'"):
        candidates.tried("cubic,bbr", content, "--try")


def test_an_unknown_candidate_has_a_suggestion_and_the_list():
    with pytest.raises(InputError) as error:
        candidates.tried("fq,fq_codel", {})
    assert str(error.value) == (
        '--candidates: found "fq"; expected "fq_codel", or another name that `ackclock show` lists'
    )
