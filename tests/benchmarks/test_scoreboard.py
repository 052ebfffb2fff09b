"""The captures of the scoreboard: drawn the same each time, joined with their truth, also after they were altered."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

import ackclock as ac
from ackclock.reproductions import pcap

NAMES = ("cases", "alter", "truth", "rounds", "score", "sharing")

VANTAGES = ("senders", "receivers", "link-near-far")


@pytest.fixture(scope="module")
def tools(scoreboard):
    return {name: scoreboard(name) for name in NAMES}


@pytest.fixture(scope="module")
def results(tools, tmp_path_factory):
    """Two small ones: with packets that others overtake, and with random loss."""
    drawn = [tools["cases"].case(number) for number in range(200)]
    chosen = [
        next(one for one in drawn if one.late > 0.01 and one.limit == "bulk" and one.rtt_s < 0.05),
        next(one for one in drawn if one.loss > 0.01 and one.limit == "bulk" and one.rtt_s < 0.05),
    ]
    found = []
    for one in chosen:
        folder = tmp_path_factory.mktemp(one.name)
        text = "\n".join('duration = "2s"' if line.startswith("duration") else line for line in one.text.splitlines())
        data = ac.run(ac.loads(text).plan(), captures=folder / "made")
        data.write(folder / "result", folder / "made")
        found.append((one, folder / "result"))
    return found


def captures(result):
    return {path.stem.split("-", 2)[2]: path for path in (result / "captures").iterdir()}


def test_cases_are_drawn_alike_and_all_can_be_planned(tools):
    case = tools["cases"].case
    assert case(7) == case(7) != case(27)
    for number in range(0, 60, 3):
        assert ac.loads(case(number).text).plan().record.vantages == ("senders", "receivers", "link:near>far")


def test_every_packet_has_its_row_and_every_row_that_passed_its_packet(tools, results):
    for _, result in results:
        for vantage in VANTAGES:
            path = captures(result)[vantage]
            rows = tools["truth"].read(result, path)
            assert rows["packet"].drop_nulls().sort().to_list() == [*range(1, len(pcap.read(path)) + 1)]
        rows = tools["truth"].read(result, captures(result)["senders"]).filter(pl.col("end") == "sender")
        assert rows["packet"].null_count() == 0


def test_what_is_late_is_overtaken(tools, results):
    one, result = results[0]
    rows = tools["truth"].read(result, captures(result)["receivers"])
    first = rows.filter(pl.col("kind") == "data", pl.col("flow") == 0, pl.col("arrival_s").is_not_null())
    latest = first["arrival_s"].cum_max().shift(1)
    overtaken = (first["arrival_s"] < latest).sum()
    assert overtaken >= 1
    assert tools["cases"].case(one.number).late == one.late


def test_copies_are_needless_if_their_data_arrive_anyway(tools, results):
    _, result = results[1]
    rows = tools["truth"].read(result, captures(result)["senders"])
    data = rows.filter(pl.col("kind") == "data")
    assert data.filter(pl.col("copy") == 0)["spurious"].sum() == 0
    needless = data.filter(pl.col("spurious"), pl.col("fate").is_in(["delivered", "duplicate"]))
    assert set(needless["fate"]) <= {"duplicate"}
    again = data.filter(pl.col("copy") > 0, ~pl.col("spurious"))
    assert again.height > 5
    assert "duplicate" not in set(again["fate"])


def test_super_segments_cover_the_rows_of_their_segments(tools, results, tmp_path):
    alter, truth = tools["alter"], tools["truth"]
    _, result = results[1]
    records = pcap.read(captures(result)["senders"])
    joined = list(alter.offloaded(records, 65_535, 0))
    assert max(record.payload_bytes for record in joined) >= 2 * max(record.payload_bytes for record in records)
    assert sum(record.payload_bytes for record in joined) == sum(record.payload_bytes for record in records)
    rows = truth.shown(ac.Dataset.read(result).transmissions, joined)
    whole = truth.shown(ac.Dataset.read(result).transmissions, records)
    assert rows["packet"].is_null().to_list() == whole["packet"].is_null().to_list()
    pcap.write(tmp_path / "cut.pcap", alter.cut(joined, 54), 54)
    again = pcap.read(tmp_path / "cut.pcap")
    assert {len(record.kept) for record in again} == {54}
    assert [record.length for record in again] == [record.length for record in joined]


def test_a_capture_that_loses_shows_fewer_and_nothing_else(tools, results):
    alter, truth = tools["alter"], tools["truth"]
    _, result = results[1]
    records = pcap.read(captures(result)["senders"])
    left = list(alter.lossy(records, 0.1, 5))
    assert left == list(alter.lossy(records, 0.1, 5))
    assert 0.8 * len(records) < len(left) < 0.97 * len(records)
    rows = truth.shown(ac.Dataset.read(result).transmissions, left)
    assert rows["packet"].count() == len(left)
    stranger = [pcap.Record(0, 60, bytes(60))]
    with pytest.raises(ValueError, match="nobody has sent"):
        truth.shown(ac.Dataset.read(result).transmissions, stranger)


@pytest.mark.parametrize(
    ("waited", "told", "true"),
    [
        ("application", "application", "application"),
        ("receiver", "receiver", "receiver"),
        ("cwnd", "shared_bottleneck", "window"),
        ("pacing", "slow_start", "window"),
    ],
)
def test_a_limit_is_right_if_it_delayed_the_majority_of_segments(tools, waited, told, true):
    score, rounds = tools["score"], tools["rounds"]
    # Of ten segments a second two have waited for something else.
    limits = ["nothing" if number % 5 == 0 else waited for number in range(100)]
    times_s = [0.1 * number for number in range(100)]
    truth = pl.DataFrame({"time_s": times_s, "flow": [3] * 100, "limit": limits})

    def limits_of(word):
        return score._of_limits(sampled_rounds(rounds, [5.0], word), truth)

    assert (limits_of(told)[f"limit {true}"], limits_of(told)[f"limit {true} right"]) == (1, 1)
    wrong = "receiver" if true != "receiver" else "cwnd"
    assert (limits_of(wrong)[f"limit {true}"], limits_of(wrong)[f"limit {true} right"]) == (1, 0)
    others = {"application", "receiver", "slow_start", "window"} - {true}
    assert all(limits_of(told)[f"limit {name}"] == 0 for name in others)


def sampled_rounds(rounds, times_s, word):
    """Samples of flow 3, whose round trips take a second."""
    code = rounds._core.CAPTURE_LIMITS.index(word)
    count = len(times_s)
    samples = {"time_s": times_s, "flow": [6] * count, "srtt_s": [1.0] * count, "limit": [code] * count}
    return rounds.sampled_rounds(samples, pl.DataFrame({"told": [6], "flow": [3]}), 0.0)


def test_each_round_trip_has_one_count(tools):
    times_s = [0.1 * number for number in range(100)]
    assert sampled_rounds(tools["rounds"], times_s, "cwnd").height == pytest.approx(10, abs=1)


def test_what_two_waits_have_equally_often_is_left_out(tools):
    truth = pl.DataFrame({"time_s": [4.0, 4.2], "flow": [3, 3], "limit": ["cwnd", "application"]})
    rows = sampled_rounds(tools["rounds"], [5.0], "cwnd")
    assert tools["rounds"].limits(rows, truth).is_empty()
    assert tools["rounds"].limits(rows, truth.head(1))["true"].to_list() == ["window"]


@pytest.mark.parametrize(("of_link", "of_flow", "queue"), [(1, 0.95, "own"), (1, 0.5, "shared"), (0.5, 0.9, "none")])
def test_owner_of_a_queue(tools, of_link, of_flow, queue):
    """A link that works so much, and a flow that has so much of what it delivers."""
    times_s = [0.1 * number for number in range(101)]
    data = SimpleNamespace(
        links=pl.DataFrame({"link": [2], "name": ["near>far"]}),
        queue_samples=pl.DataFrame({"time_s": times_s, "link": [2] * 101, "utilisation": [float(of_link)] * 101}),
        transmissions=pl.DataFrame(
            {
                "end": ["sender"] * 202,
                "flow": [3, 4] * 101,
                "arrival_s": [time_s for time_s in times_s for _ in range(2)],
                "payload_bytes": [round(1000 * of_flow), round(1000 * (1 - of_flow))] * 101,
            }
        ),
    )
    rounds = tools["rounds"]
    found = rounds.queues(sampled_rounds(rounds, [5.0], "cwnd"), data, "near>far")
    assert found["queue"].to_list() == [queue]


def test_shared_queues_are_drawn_evenly_and_distinguished_from_own_queues(tools, tmp_path):
    sharing = tools["sharing"]
    assert sharing.drawn(5) == sharing.drawn(5) != sharing.drawn(7)
    told = {}
    alone = next(
        case for case in map(sharing.drawn, range(200)) if case.cross_traffic == "nothing" and case.rtt_s < 0.03
    )
    lines = ['duration = "6s"' if line.startswith("duration") else line for line in alone.text.splitlines()]
    packets_per_s = alone.rate_bps / (8 * 1500)
    udp = ["[[traffic]]", 'kind = "udp"', 'from = "other"', 'to = "receiver"', 'packet = "1472B"']
    udp += [f'rate = "{0.4 * packets_per_s:.0f}/s"', 'start = "2s"']
    for name, more in (("alone", []), ("beside", udp)):
        case = replace(alone, text="\n".join([*lines, *more]))
        place = tmp_path / name
        place.mkdir()
        for vantage, view, found in sharing.judged(case, sharing.made(case, place)):
            assert view == "all"
            told.setdefault(vantage, []).append(found)
    for vantage, found in told.items():
        rows = pl.concat(found)
        assert set(rows["queue"]) >= {"own", "shared"}
        right = (rows["said"] == rows["queue"].replace(tools["rounds"].QUEUES)).mean()
        assert right > 0.8, vantage
