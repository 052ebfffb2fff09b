"""A moment of a run packet by packet."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest

import ackclock as ac
from ackclock.errors import InputError
from ackclock.explore import runs
from ackclock.explore.lessons import lessons

LESSONS = {lesson.name: lesson for lesson in lessons()}


def moment(name: str, from_s: float) -> dict:
    return runs.moment(runs.prepared(LESSONS[name].scenario).plan, from_s)


def test_a_packet_waits_is_sent_and_arrives():
    """20 Mb/s, 40 ms: 1514 bytes take 605.6 µs on the link, and then 20 ms to the receiver."""
    made = moment("standing-queue", 10.0)
    assert (made["link"], made["from_s"]) == ("bottleneck", 10.0)
    assert made["until_s"] == pytest.approx(10.24)
    done = [(came, left, arrived) for _, came, left, arrived, _ in made["packets"] if arrived is not None]
    assert len(done) > 100
    for came, left, arrived in done:
        assert left - came > 0.05
        assert arrived - left == pytest.approx(0.02, abs=1e-9)
    gaps = [later[1] - earlier[1] for earlier, later in pairwise(done)]
    assert gaps == pytest.approx([1514 * 8 / 20e6] * len(gaps), abs=1e-8)
    assert all(arrived - sent == pytest.approx(0.02) for _, sent, arrived in made["acks"])
    assert made["groups"] == {0: "cubic"}


def test_the_packets_that_wait_are_the_backlog():
    made = moment("standing-queue", 10.0)
    data = ac.run(LESSONS["standing-queue"].scenario)
    sample = data.queue_samples.filter((pl.col("time_s") - 10.1).abs() < 1e-6)
    at_s = sample["time_s"][0]
    waiting = sum(came <= at_s < (left or dropped or at_s + 1) for _, came, left, _, dropped in made["packets"])
    # The one in transmission has left the queue, and is counted here until it is over.
    assert waiting - 1 == sample["backlog_p"][0]


def test_drops_of_a_full_queue_never_waited_and_those_of_codel_did():
    full = [each for each in moment("two-bbr-and-a-cubic", 15.0)["packets"] if each[4] is not None]
    assert len(full) > 10
    assert all(came == dropped and left is None for _, came, left, _, dropped in full)
    codel = [each for each in moment("codel-law", 0.0)["packets"] if each[4] is not None]
    assert codel
    assert all(dropped > came for _, came, _, _, dropped in codel)


@pytest.mark.parametrize("from_s", [-1.0, 20.0, float("nan"), float("inf")])
def test_an_instant_outside_the_run_is_an_error(from_s):
    with pytest.raises(InputError, match=r"from: found .* s; expected an instant of the run, 0 s to 20 s"):
        moment("standing-queue", from_s)


def test_too_long_a_log_is_an_error():
    text = LESSONS["standing-queue"].scenario.replace("20Mbit", "10Gbit")
    with pytest.raises(InputError, match=r"expected at most 2,000,000: begin earlier"):
        runs.moment(runs.prepared(text).plan, 15.0)


def test_copies_of_a_segment_are_separate_packets():
    log = pl.DataFrame(
        {
            "flow": [0] * 7,
            "sequence": [5] * 7,
            "kind": ["data"] * 7,
            "link": [0, 0, 0, 0, None, 0, None],
            "time_s": [0.0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.6],
            "what": ["enqueue", "enqueue", "dequeue", "dequeue", "arrive", "drop", "arrive"],
        }
    )
    assert runs.passages(log, 0) == [
        runs.Passage(0, 0.0, 0.2, 0.35),
        runs.Passage(0, 0.1, 0.3, 0.6),
        runs.Passage(0, 0.4, dropped_s=0.4),
    ]
