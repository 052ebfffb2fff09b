"""The hybrid engine: what it rejects, and where it is the packet engine."""

from __future__ import annotations

import polars as pl
import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock.dataset import Dataset
from ackclock.engines import engine, simulator, unsupported

BULK = f"""
duration = "30s"
warmup = "5s"
{dumbbell("50Mbit", "40ms")}
[[flows]]
count = 2
congestion = "cubic"
"""
SHORT = BULK.replace("count = 2", 'count = 2\nsize = "2MB"\nstart = { every = "1s" }')
TABLES = ("flows", "links", "flow_samples", "queue_samples", "events")


def rows(run: Dataset) -> list[pl.DataFrame]:
    return [getattr(run, name) for name in TABLES]


def hybrid(text: str, seed: int = 1) -> Dataset:
    return engine("hybrid").run(ac.loads(text).plan(), seed)


def same(one: Dataset, other: Dataset) -> bool:
    return all(mine.equals(others) for mine, others in zip(rows(one), rows(other), strict=True))


@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        (('discipline = "pfifo"', 'discipline = "codel"'), 'queue discipline "codel"'),
        (('congestion = "cubic"', 'congestion = "bbr"'), 'congestion control "bbr"'),
        (("[[flows]]", "[record]\npackets = true\n[[flows]]"), "per-packet log"),
        (
            ('"cubic"', '{ kind = "cubic", delayed_ack_correction = false }'),
            "cubic with delayed_ack_correction = false",
        ),
        (("[[flows]]", "[tcp]\npacing = true\n[[flows]]"), "pacing (tcp.pacing)"),
        (("[[flows]]", '[[traffic]]\nkind = "udp"\nrate = "100/s"\npacket = "972B"\n[[flows]]'), "UDP"),
    ],
)
def test_what_a_leap_cannot_keep_is_rejected_by_name(change, lacking):
    plan = ac.loads(BULK.replace(*change)).plan()
    reasons = unsupported(engine("hybrid"), plan)
    assert lacking in [reason.what for reason in reasons]
    assert all("packet" in reason.available_in for reason in reasons)


def test_short_transfers_are_simulated_as_by_the_packet_engine():
    assert same(hybrid(SHORT), engine("packet").run(ac.loads(SHORT).plan(), 1))


def test_long_transfers_are_not():
    assert not same(hybrid(BULK), engine("packet").run(ac.loads(BULK).plan(), 1))


def test_results_are_independent_of_steps(monkeypatch):
    whole = hybrid(BULK)
    monkeypatch.setattr(simulator, "STEPS", 7)
    monkeypatch.setattr(simulator, "MAX_TAKINGS", 7)
    monkeypatch.setattr(simulator, "ROWS_PER_TAKING", 1)
    assert same(hybrid(BULK), whole)


def test_the_seed_matters_and_repeats():
    text = BULK.replace("count = 2", 'count = 2\nstart = { jitter = "1s" }')
    assert same(hybrid(text, 3), hybrid(text, 3))
    assert not same(hybrid(text, 3), hybrid(text, 4))


def test_the_manifest_names_the_engine():
    assert hybrid(SHORT).manifest["engine"] == "hybrid"
