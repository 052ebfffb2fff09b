"""Traffic: for each mistake the line, the key, what was found and what is expected."""

from __future__ import annotations

import pytest
from small_networks import dumbbell

from ackclock.errors import ScenarioError
from ackclock.scenario import planning

HEAD = f"""\
duration = "10s"
{dumbbell("10Mbit", "20ms", "50p")}
[[traffic]]
"""

POISSON = 'kind = "poisson"\nrate = "1/s"\n'
UDP = 'kind = "udp"\npacket = "1B"\n'

MISTAKES = {
    "unknown kind": ('kind = "poison"', '8: traffic[0].kind: found "poison"; expected "poisson"'),
    "QUIC": (
        'transport = "quic"',
        '7: traffic[0].kind: found nothing; expected a table [[flows]] with transport = "',
    ),
    "no kind": ('size = "1KB"', '7: traffic[0].kind: found nothing; expected a kind: one of "poisson", "periodic",'),
    "no size": (POISSON, "7: traffic[0].size: found nothing; expected how large a transfer is:"),
    "a size without unit": (POISSON + "size = 5", "10: traffic[0].size: found 5; expected 1B to"),
    "rate and load": (
        POISSON + 'load = 1\nsize = "1KB"',
        '7: traffic[0]: found both rate and load; expected rate = "1/s" or load = 0.5',
    ),
    "neither rate nor load": (
        'kind = "poisson"\nsize = "1KB"',
        '7: traffic[0]: found neither rate nor load; expected rate = "1/s" or',
    ),
    "unknown distribution": (
        POISSON + 'size = { distribution = "paretto" }',
        '10: traffic[0].size.distribution: found "paretto"; expected "pareto" (known: "fixed", "exponential",',
    ),
    "silent truncation": (
        POISSON + 'size = { distribution = "exponential", mean = "1KB", max = "9KB" }',
        '10: traffic[0].size.truncation: found nothing; expected "redraw" or "clip" beside max',
    ),
    "truncation at nothing": (
        POISSON + 'size = { distribution = "exponential", mean = "1KB", truncation = "clip" }',
        '10: traffic[0].size.truncation: found "clip"; expected a max = "…" beside it',
    ),
    "a Pareto without mean": (
        POISSON + 'size = { distribution = "pareto", shape = 1, mean = "1KB" }',
        "10: traffic[0].size.mean: found 1000B; expected min: a shape up to 1 has no mean",
    ),
    "two scales": (
        POISSON + 'size = { distribution = "lognormal", sigma = 1, mean = "1KB", median = "1KB" }',
        "10: traffic[0].size: found both median and mean; expected one of median and mean",
    ),
    "shares that fall": (
        POISSON + 'size = { distribution = "empirical", points = [["1KB", 0.5], ["10KB", 0.4]] }',
        "10: traffic[0].size.points: found a list of 2; expected sizes and shares that rise, the last share being 1",
    ),
    "half a point": (
        POISSON + 'size = { distribution = "empirical", points = [["1KB"], ["10KB", 1]] }',
        '10: traffic[0].size.points[0]: found a list of 1; expected a pair such as ["10KB", 0.5]',
    ),
    "a size in packets and one in bytes": (
        POISSON + 'size = { distribution = "empirical", points = [["1KB", 0], ["10p", 1]] }',
        "10: traffic[0].size.points: found both; expected all sizes in bytes, or all in packets",
    ),
    "a loop without end": (
        'kind = "sources"\nsize = "1KB"',
        '7: traffic[0].transfers: found nothing; expected transfers = …, or a think = "…" that takes time',
    ),
    "users by another name": (
        'kind = "web"\nsize = "1KB"\nobjects = 1\nthink = "1s"\ncount = 3',
        "12: traffic[0].count: found a key that does not belong here; expected users: the number of users",
    ),
    "misspelt users": (
        'kind = "web"\nsize = "1KB"\nobjects = 1\nthink = "1s"\nuser = 3',
        '12: traffic[0].user: found an unknown key; expected "users"',
    ),
    "objects in quotes": (
        'kind = "web"\nsize = "1KB"\nobjects = "4"\nthink = "1s"',
        '10: traffic[0].objects: found "4"; expected a whole number up to 100000, or { distribution',
    ),
    "a range that falls": (
        'kind = "web"\nsize = "1KB"\nobjects = 1\nthink = { distribution = "uniform", from = "2s", to = "1s" }',
        "11: traffic[0].think.to: found 1 s; expected at least from (2 s)",
    ),
    "half a range": (
        'kind = "web"\nsize = "1KB"\nobjects = 1\nthink = { distribution = "uniform", to = "1s" }',
        "11: traffic[0].think.from: found nothing; expected the shortest",
    ),
    "rounds without end": (
        'kind = "incast"\nsize = "1KB"\nsenders = 3',
        '7: traffic[0].rounds: found nothing; expected rounds = … or every = "…"',
    ),
    "UDP with a congestion control": (
        UDP + 'rate = "1/s"\ncongestion = "cubic"',
        "11: traffic[0].congestion: found a key that does not belong here; expected no congestion: UDP has none",
    ),
    "UDP of no rate": (
        UDP,
        '7: traffic[0]: found neither rate nor rate_adaptation; expected rate = "250/s" or rate_adaptation =',
    ),
    "bursts that overlap": (
        UDP + 'rate = "100/s"\nburst = { packets = 200, every = "1s" }',
        "11: traffic[0].burst.every: found 1 s; expected at least 2 s, which 200 datagrams take",
    ),
    "a rate in bits": (
        UDP + 'rate = "1Mbit"',
        '10: traffic[0].rate: found "1Mbit"; expected datagrams or transfers per second (not bits) such',
    ),
    "bounds that cross": (
        UDP + 'rate_adaptation = { target = "20ms", min = "10/s", max = "5/s" }',
        "10: traffic[0].rate_adaptation.max: found 5/s; expected at least as much as min (10/s)",
    ),
    "on and off in no time": (
        'kind = "on-off"\npacket = "1B"\nrate = "1/s"\non = "0s"\noff = "0s"',
        "11: traffic[0].on: found 0 s; expected more than no time",
    ),
    "hosts of a dumbbell": (
        POISSON + 'size = "1KB"\nfrom = "h0"',
        "11: traffic[0].from: found a key that does not belong here; expected no from: this topology has no hosts",
    ),
    "a late start": (
        POISSON + 'size = "1KB"\nstart = "10s"',
        "11: traffic[0].start: found a start as late as 10 s; expected all starts before the end",
    ),
    "an early stop": (
        POISSON + 'size = "1KB"\nstart = "5s"\nstop = "5s"',
        "12: traffic[0].stop: found 5 s; expected after the last start (5 s)",
    ),
}


@pytest.mark.parametrize(("traffic", "expected"), MISTAKES.values(), ids=MISTAKES.keys())
def test_one_mistake_is_one_line(traffic, expected):
    with pytest.raises(ScenarioError) as caught:
        planning.loads(HEAD + traffic, "x.toml")
    found = str(caught.value).split("\n")
    assert len(found) == 1
    assert found[0].startswith(f"x.toml:{expected}")


def test_each_mistake_of_a_table_is_reported_in_one_pass():
    with pytest.raises(ScenarioError) as caught:
        planning.loads(HEAD + 'kind = "web"\nsize = "1KB"\nusers = 0\nsessions = 3', "x.toml")
    keys = sorted(line.split(": ")[1] for line in str(caught.value).split("\n"))
    assert keys == [f"traffic[0].{key}" for key in ("objects", "pages", "sessions", "users")]
    with pytest.raises(ScenarioError) as misspelt:
        planning.loads(HEAD + 'kind = "web"\nsize = "1KB"\nobjects = 1\nthinc = "1s"', "x.toml")
    assert str(misspelt.value) == 'x.toml:11: traffic[0].thinc: found an unknown key; expected "think"'
