"""Whatever a scenario says of networks, flows and traffic: it has a plan, or mistakes that are told."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ackclock.errors import ScenarioError
from ackclock.input.source import Source
from ackclock.scenario.planning import Loaded
from ackclock.scenario.scenario import Scenario

RATES = st.sampled_from(["1kbit", "10Mbit", "1Gbit"])
TIMES = st.sampled_from(["1us", "20ms", "1s"])
COUNTS = st.sampled_from([0, 1, 2, 2, 3, 4, 6])
EVENTS = st.sampled_from(["1/s", "250/s", "5/ms"])
QUEUES = st.sampled_from(
    [
        {"discipline": "pfifo", "limit": "1bdp"},
        {"discipline": "bfifo", "limit": "1bdp"},
        {"discipline": "pfifo", "limit": "10p"},
        {"discipline": "fq_codel"},
    ]
)


def some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A table with all of the one keys and one or two of the other."""
    chosen = st.lists(st.sampled_from([*optional] or [""]), max_size=2, unique=True)
    return chosen.flatmap(
        lambda keys: st.fixed_dictionaries({**required, **{key: optional[key] for key in keys if key}})
    )


PORT = {"rate": RATES, "delay": TIMES, "queue": QUEUES}
CHANGES = st.lists(
    some(
        {
            "at": TIMES,
            "link": st.sampled_from(["bottleneck", "down", "trunk", "hop-1", "s0>s1", "leaf-0<>spine-0", "x"]),
        },
        {"rate": RATES, "delay": TIMES, "up": st.booleans()},
    ),
    max_size=2,
)
COMMON = {"changes": CHANGES, "frame_overhead": st.sampled_from(["0B", "38B"])}
ROUTED = {**COMMON, "routing": st.sampled_from(["single", "ecmp", "weighted"]), "host_queue": QUEUES}
LEG = some(PORT, {"loss": st.just({"every": 5}), "burst": st.just("10KB")})


def network(name: str, required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return some({"topology": st.just(name), **required}, optional)


NETWORKS = st.one_of(
    network(
        "dumbbell",
        {"rate": RATES, "rtt": st.sampled_from(["20ms", ["1ms", "2ms"]]), "queue": QUEUES},
        {
            **COMMON,
            "access_rate": RATES,
            "aggregation": st.sampled_from([1.0, 10.0, 0.3]),
            "access_queue": QUEUES,
            "reverse": some({"rate": RATES, "queue": QUEUES}, {}),
        },
    ),
    network("asymmetric", {"down": LEG, "up": LEG}, COMMON),
    network("y", {"branches": st.lists(LEG, min_size=2, max_size=3), "trunk": LEG}, ROUTED),
    network("parking-lot", {**PORT, "hops": COUNTS, "access_rate": RATES}, {**ROUTED, "access_delay": TIMES}),
    network("fat-tree", {**PORT, "ports": COUNTS, "levels": st.integers(0, 3)}, {**ROUTED, "host_rate": RATES}),
    network("leaf-spine", {**PORT, "leaves": COUNTS, "spines": COUNTS, "hosts": COUNTS}, ROUTED),
    network(
        "graph",
        {
            "nodes": st.tuples(
                some({"name": st.just("h"), "count": COUNTS, "host": st.just(True)}, {}),
                some({"name": st.just("s")}, {"host": st.booleans(), "count": COUNTS}),
            ).map(list),
            "links": st.lists(
                some(
                    {"from": st.sampled_from(["h-*", "h-*", "h-1", "s"]), "to": st.sampled_from(["s", "*"]), **PORT},
                    {"one_way": st.booleans(), "weight": st.sampled_from([0.0, 2.0])},
                ),
                min_size=1,
                max_size=3,
            ),
        },
        ROUTED,
    ),
)

HOSTS = st.sampled_from(["h0", "h*", "h-*", "branch-0", ["h0", "h2"], []])

#: Possible paths of data on each topology.
PLACES: dict[str, dict[str, Any]] = {
    "y": {"path": "branch-1"},
    "parking-lot": {"path": "long"},
    "fat-tree": {"between": "all"},
    "leaf-spine": {"between": "permutation"},
    "graph": {"to": "h-0"},
}
PLACED = {
    "count": COUNTS,
    "congestion_factor": st.sampled_from([0.5, 1.0, 1.5]),
    "direction": st.sampled_from(["down", "up"]),
    "rtt": st.sampled_from(["1ms", "100ms"]),
    "from": HOSTS,
    "to": HOSTS,
    "between": st.sampled_from(["all", "round-robin", "permutation", "random"]),
    "path": st.sampled_from(["long", "hop-1", "branch-1"]),
    "stop": TIMES,
    "priority": COUNTS,
}
SIZES = st.sampled_from(
    [
        "1B",
        "10p",
        {"distribution": "zipf", "exponent": 1.7, "max": "100p"},
        {"distribution": "pareto", "shape": 1.16, "min": "1KB"},
        {"distribution": "pareto", "shape": 0.9, "min": "1KB", "max": "1p", "truncation": "redraw"},
        {"distribution": "lognormal", "sigma": 1.0, "mean": "1KB", "max": "100KB", "truncation": "clip"},
        {"distribution": "exponential", "mean": "3p"},
        {"distribution": "empirical", "points": [["1KB", 0.5], ["1MB", 1]]},
    ]
)
READERS = st.sampled_from([{"rate": "1Mbit"}, {"chunk": "1KB", "pause": {"at": "1s", "for": "2s", "every": "3s"}}])
WRITES = st.sampled_from(
    [{"size": "100B", "every": "10ms"}, {"size": "9KB", "count": 3, "every": "1s", "nodelay": True}]
)
TRANSFERS = {
    "request": st.sampled_from(["1B", "2KB"]),
    "slow_reader": READERS,
    "writes": WRITES,
    "congestion": st.sampled_from(["reno", "dctcp"]),
}
FLOWS = some(
    {},
    {
        **PLACED,
        **TRANSFERS,
        "streams": COUNTS,
        "start": st.sampled_from(["0s", {"every": "1s", "jitter": "1s"}]),
        "size": st.sampled_from(["1MB", ["1p", "2p"]]),
        "application_rate": RATES,
    },
)


def traffic(kind: str, required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return some({"kind": st.just(kind), **required}, {**PLACED, "start": TIMES, **optional})


TRAFFIC = st.one_of(
    traffic("poisson", {"size": SIZES}, {**TRANSFERS, "rate": EVENTS, "load": st.sampled_from([0.1, 2.0])}),
    traffic("periodic", {"size": SIZES, "every": TIMES}, TRANSFERS),
    traffic("once", {"size": SIZES}, {**TRANSFERS, "jitter": TIMES}),
    traffic("sources", {"size": SIZES, "think": TIMES}, {**TRANSFERS, "transfers": COUNTS}),
    traffic("web", {"size": SIZES, "think": TIMES, "objects": COUNTS}, {**TRANSFERS, "users": COUNTS, "main": SIZES}),
    traffic("incast", {"size": SIZES, "senders": COUNTS}, {**TRANSFERS, "every": TIMES, "rounds": COUNTS}),
    traffic(
        "udp",
        {"packet": st.sampled_from(["1B", "1KB"])},
        {
            "rate": EVENTS,
            "burst": st.just({"packets": 10, "every": "1s"}),
            "rate_adaptation": st.just({"target": "20ms", "min": "1/s", "max": "9/s"}),
        },
    ),
    traffic("on-off", {"packet": st.just("1B"), "rate": EVENTS, "on": TIMES, "off": TIMES}, {}),
)


@settings(max_examples=300)
@given(NETWORKS, st.lists(FLOWS, max_size=2), st.lists(TRAFFIC, max_size=2))
def test_it_has_a_plan_or_mistakes(network, flows, traffic):
    place = PLACES.get(network["topology"], {})
    groups = {name: [{**place, **group} for group in given] for name, given in (("flows", flows), ("traffic", traffic))}
    try:
        given = Scenario.model_validate({"duration": "10s", "network": network, **groups})
        plan = Loaded(given, Source("x.toml", "")).plan()
    except ValidationError as error:
        assert all(detail["type"] == "fault" for detail in error.errors())
        return
    except ScenarioError as error:
        assert error.problems
        return
    asked = json.loads(json.dumps(plan.engine_input(), allow_nan=False))
    assert len(asked["links"]) == len(plan.links)
    assert asked["flows"] or asked["traffic"] or asked["datagrams"]
    assert plan.bottleneck < len(plan.links)
    assert plan.mean_base_rtt_s >= 0
