"""The packet engine from Python: a plan goes in, a dataset comes out."""

from __future__ import annotations

import json

import pytest
from polars.testing import assert_frame_equal

import ackclock as ac
from ackclock import _core, algorithms
from ackclock.dataset import Spool
from ackclock.engines import simulator
from ackclock.engines.engine import RunOptions, manifest
from ackclock.engines.packet import PacketEngine
from ackclock.errors import UnsupportedError
from ackclock.plan import CongestionPlan

TEXT = """
name = "two flows"
duration = "3s"
warmup = "1s"
seeds = [1, 2]
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = ["20ms", "30ms"]
queue = { discipline = "pfifo", limit = "1bdp" }
reverse = { rate = "10Mbit", queue = { discipline = "bfifo", limit = "30KB" } }
[[flows]]
congestion = "cubic"
start = { jitter = "10ms" }
[[flows]]
congestion = "reno"
size = "100KB"
"""
TABLES = ("flows", "flow_samples", "queue_samples", "events", "links")


@pytest.fixture(scope="module")
def data():
    return ac.run(ac.loads(TEXT, "two.toml").plan())


def test_the_tables_are_filled(data):
    assert data.flows.height == 4
    assert data.flows["congestion"].to_list() == ["cubic", "reno"] * 2
    assert data.flows["base_rtt_s"].to_list() == [0.02, 0.03] * 2
    assert data.flows["size_bytes"].to_list() == [None, 100_000] * 2
    assert data.flows["source"].to_list() == ["sender-0", "sender-1"] * 2
    assert data.flows["delivered_bytes"][1] == 100_000
    assert data.links["name"].to_list() == ["bottleneck", "reverse"] * 2
    assert data.queue_samples.height == pytest.approx(2 * 2 * 300, rel=0.02)
    assert data.flow_samples.height > 500
    assert set(data.events["kind"]) >= {"established", "finished"}


def test_the_manifest_names_both_runs(data):
    assert [run["seed"] for run in data.runs] == [1, 2]
    assert data.manifest["scenario_path"] == "two.toml"
    assert data.manifest["engine"] == "packet"


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(data):
    plan = ac.loads(TEXT, "two.toml").plan()
    again = ac.run(plan, jobs=1)
    for table in TABLES:
        assert_frame_equal(getattr(again, table), getattr(data, table))
    starts = data.flows["start_s"].to_list()
    assert starts[0] != starts[2]


def test_metrics_are_computed(data):
    found = data.metrics()
    assert [run["seed"] for run in found["runs"]] == [1, 2]
    a_packet = 1514 * 8 / (10e6 * 2)  # what is sent across an end of the two measured seconds counts whole
    assert 0.8 < found["summary"]["utilisation"]["mean"] <= 1 + a_packet


def test_the_rows_of_a_hundred_thousand_transfers():
    """One transfer of a byte each 10 µs: all have a row, and the name of their control."""
    text = """
    name = "many"
    duration = "1.1s"
    seeds = [1]
    record = { interval = "1s" }
    [network]
    topology = "dumbbell"
    rate = "100Gbit"
    rtt = "1ms"
    queue = { discipline = "pfifo", limit = "1000p" }
    [[traffic]]
    kind = "periodic"
    every = "10us"
    size = "1B"
    stop = "1s"
    congestion = "cubic"
    """
    plan = ac.loads(text).plan()
    simulation = _core.Simulation(json.dumps(plan.engine_input()), 1)
    simulation.advance(plan.duration_s)
    spool = Spool(names=simulator.table_names())
    simulator._take(simulation, spool, plan, ())
    simulator._finish(simulation, spool, plan, ())
    flows = spool.dataset(manifest(plan, "packet", 1, "")).flows
    assert flows["flow"].to_list() == list(range(100_000))
    assert flows["congestion"].unique().to_list() == ["cubic"]
    assert flows["delivered_bytes"].sum() == 100_000


def test_the_lists_of_algorithms_are_those_of_the_simulator():
    """Every listed algorithm can be made, and one with a spec that is not listed cannot."""
    plan = ac.loads(TEXT).plan().engine_input()

    def complete(family: algorithms.Family, name: str) -> dict[str, object]:
        spec = algorithms.spec(family, name)
        given = {key: 300_000 for key, parameter in spec.parameters.items() if parameter.required}
        plain = {key: getattr(value, "value", value) for key, value in spec.complete(given).items()}
        whole = ("packets", "bytes")
        sized = {k: int(v) if spec.parameters[k].kind in whole and v is not None else v for k, v in plain.items()}
        return {
            algorithms.NAME_KEYS[family]: name,
            "parameters": {spec.key(key): value for key, value in sized.items()},
        }

    def accepted(kind: str, discipline: str) -> bool:
        for group in plan["groups"]:
            group["congestion"] = complete("congestion", kind)
        plan["links"][0]["queue"] = complete("queue", discipline)
        try:
            _core.Simulation(json.dumps(plan), 1)
        except ValueError:
            return False
        return True

    made = {kind for kind in algorithms.names("congestion") if accepted(kind, "pfifo")}
    assert made == set(_core.CONGESTION_CONTROLS)
    assert all(accepted("cubic", queue) for queue in algorithms.names("queue"))
    plan["links"][0]["queue"]["discipline"] = "no such discipline"
    with pytest.raises(ValueError, match="no such discipline"):
        _core.Simulation(json.dumps(plan), 1)


def test_an_algorithm_that_it_has_not_is_unsupported():
    from dataclasses import replace

    plan = ac.loads(TEXT).plan()
    group = replace(plan.groups[0], congestion=CongestionPlan("veno", {}))
    with pytest.raises(UnsupportedError, match='engine "packet" has no congestion control "veno"'):
        ac.run(replace(plan, groups=(group, plan.groups[1])))


def test_captures_go_to_the_folder(tmp_path):
    plan = ac.loads(TEXT + '\n[record]\npcap = true\npackets = true\ninterval = "100ms"').plan()
    data = ac.run(plan, captures=tmp_path / "captures")
    files = sorted(path.name for path in (tmp_path / "captures").iterdir())
    assert files == ["seed-1.pcap", "seed-2.pcap"]
    content = (tmp_path / "captures" / "seed-1.pcap").read_bytes()
    assert content[:4] in (b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1")
    assert len(content) > 10_000
    assert data.packets.height > 1000


def test_rows_that_exceed_the_memory_go_to_disk(monkeypatch):
    monkeypatch.setattr(simulator, "ROWS_PER_TAKING", 1)
    plan = ac.loads(TEXT).plan()
    engine = PacketEngine()
    small = engine.run(plan, 1, RunOptions(spool_bytes=10_000))
    assert len(small.parts["flow_samples"]) > 3
    monkeypatch.undo()
    whole = engine.run(plan, 1)
    assert_frame_equal(small.flow_samples, whole.flow_samples)
