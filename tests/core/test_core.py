"""The native module: plans in, columns out, errors instead of aborts."""

from __future__ import annotations

import json
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ackclock import _core, algorithms, load
from ackclock.dataset.tables import CAUSES, ENDS, EVENT_KINDS, FATES, LIMITS, PACKET_ACTIONS

SCENARIO = Path(__file__).parents[2] / "scenarios" / "dumbbell.toml"

#: A value in Rust → its type in Python.
DTYPES: dict[str, Any] = {
    "f64": np.dtype(np.float64),
    "u64": np.dtype(np.uint64),
    "u32": np.dtype(np.uint32),
    "u8": np.dtype(np.uint8),
    "bool": np.dtype(np.bool_),
    "String": str,
    "Vec<f64>": np.dtype(np.float64),
    "Vec<u64>": np.dtype(np.uint64),
}


#: Recorded data of a scenario without [record].
RECORD = load(SCENARIO).plan().engine_input()["record"]


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    found: dict[str, Any] = load(SCENARIO).plan().engine_input()
    return {**found, "duration_s": 5.0, "warmup_s": 1.0}


def run(plan: dict[str, Any], seed: int, step_s: float = 1.0) -> dict[str, dict[str, Any]]:
    """All tables of a run that was advanced and drained in steps."""
    simulation = _core.Simulation(json.dumps(plan), seed)
    parts, reached = [], 0.0
    while reached < plan["duration_s"]:
        reached = simulation.advance(reached + step_s)
        parts.append(simulation.drain())
    end = simulation.finish()
    parts.append(end)
    rows = {
        table: {name: np.concatenate([part[table][name] for part in parts]) for name in end[table]}
        for table in ("flow_samples", "queue_samples", "events")
    }
    return {**rows, "flows": end["flows"], "links": end["links"]}


def assert_same(left: dict[str, dict[str, Any]], right: dict[str, dict[str, Any]]) -> None:
    for table, columns in left.items():
        for name, column in columns.items():
            np.testing.assert_array_equal(column, right[table][name], f"{table}.{name}")


def test_a_run_fills_every_table(plan: dict[str, Any]) -> None:
    tables = run(plan, seed=1)
    flows, links, samples = tables["flows"], tables["links"], tables["flow_samples"]
    assert len(flows["flow"]) == len(plan["flows"])
    assert list(links["name"]) == [link["name"] for link in plan["links"]]
    assert samples["time_s"][-1] == pytest.approx(5.0)
    assert len(samples["cwnd"]) == len(samples["flow"])
    assert len(tables["queue_samples"]["backlog_p"]) > 100
    assert flows["delivered_bytes"].sum() > 20e6


def test_columns_have_their_types_with_rows_and_without(plan: dict[str, Any]) -> None:
    simulation = _core.Simulation(json.dumps(plan), 1)
    before = simulation.drain()
    simulation.advance(1.0)
    seen = set()
    for tables in (before, simulation.finish()):
        for table, columns in tables.items():
            kinds = _core.DATASET_TABLES[table]
            for name, column in columns.items():
                cells = [column] if isinstance(column, np.ndarray) else column
                found = {cell.dtype if isinstance(cell, np.ndarray) else type(cell) for cell in cells}
                assert found <= {DTYPES[kinds[name]]}, f"{table}.{name}"
                seen.add(kinds[name])
    assert not any(map(len, before["flow_samples"].values()))
    assert seen == set(DTYPES)


def test_neither_the_steps_nor_the_repetition_change_the_bytes(plan: dict[str, Any]) -> None:
    assert_same(run(plan, seed=1, step_s=1.0), run(plan, seed=1, step_s=0.37))


def test_the_seed_changes_the_run(plan: dict[str, Any]) -> None:
    first, second = run(plan, seed=1), run(plan, seed=2)
    assert list(first["flows"]["start_s"]) != list(second["flows"]["start_s"])


def test_a_thread_changes_nothing(plan: dict[str, Any]) -> None:
    found: dict[int, dict[str, dict[str, Any]]] = {}
    threads = [threading.Thread(target=lambda seed=seed: found.update({seed: run(plan, seed)})) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (1, 2):
        assert_same(found[seed], run(plan, seed))


def test_the_interpreter_is_free_while_the_engine_works(plan: dict[str, Any]) -> None:
    simulation = _core.Simulation(json.dumps({**plan, "duration_s": 300.0}), 1)
    worker = threading.Thread(target=simulation.advance, args=(300.0,))
    worker.start()
    beats = 0
    while worker.is_alive():
        time.sleep(0.001)
        beats += 1
    worker.join()
    assert beats > 5


def test_time_stops_at_the_end_of_the_plan(plan: dict[str, Any]) -> None:
    simulation = _core.Simulation(json.dumps(plan), 1)
    assert simulation.advance(2.0) == 2.0
    assert simulation.advance(1e9) == 5.0
    assert simulation.advance(float("inf")) == 5.0
    with pytest.raises(ValueError, match="not a number"):
        simulation.advance(float("nan"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"duration_s": "soon"}, "expected f64"),
        ({"flows": [{}]}, "missing field"),
        ({"links": []}, "link"),
        (
            {"record": RECORD | {"interval_s": 0.0}},
            "interval_s",
        ),
    ],
)
def test_an_unsupported_plan_is_rejected(plan: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.Simulation(json.dumps({**plan, **change}), 1)


def test_invalid_plans_are_rejected() -> None:
    with pytest.raises(ValueError, match="plan: .* at line 1"):
        _core.Simulation("no JSON", 1)
    with pytest.raises(OverflowError):
        _core.Simulation("{}", -1)


def test_a_capture_is_written_on_request(plan: dict[str, Any]) -> None:
    record = {**plan["record"], "pcap": True}
    simulation = _core.Simulation(json.dumps({**plan, "record": record}), 1)
    simulation.advance(1.0)
    (first,), (second,) = simulation.captures(), simulation.captures()
    assert int.from_bytes(first[:4], "little") == 0xA1B23C4D
    assert second == b""
    assert _core.Simulation(json.dumps(plan), 1).captures() == []


def test_each_vantage_point_has_a_capture(plan: dict[str, Any]) -> None:
    record = {**plan["record"], "pcap": ["receivers", "senders", "link:bottleneck"]}
    simulation = _core.Simulation(json.dumps({**plan, "record": record}), 1)
    simulation.advance(1.0)
    receivers, senders, link = simulation.captures()
    assert len({receivers, senders, link}) == 3
    record["pcap"] = ["link:nowhere"]
    with pytest.raises(ValueError, match='a capture is to be written at link "nowhere", which is not there'):
        _core.Simulation(json.dumps({**plan, "record": record}), 1)


def test_the_packet_log_is_written_on_request(plan: dict[str, Any]) -> None:
    record = {**plan["record"], "packets": True}
    simulation = _core.Simulation(json.dumps({**plan, "record": record}), 1)
    simulation.advance(1.0)
    packets = simulation.drain()["packets"]
    assert len(packets["sequence"]) > 1000
    assert packets["kind"].max() < len(_core.PACKET_KINDS)


def test_codes_have_the_dataset_s_names() -> None:
    assert tuple(_core.EVENT_KINDS) == EVENT_KINDS
    assert tuple(_core.PACKET_ACTIONS) == PACKET_ACTIONS
    found = _core.ENDS, _core.CAUSES, _core.FATES, _core.LIMITS
    assert tuple(map(tuple, found)) == (ENDS, CAUSES, FATES, LIMITS)


def test_the_lines_of_a_text() -> None:
    text = '[[flows]]\ncount = 1\n[[flows]]\nrtt = [\n  "1ms",\n]\n'
    lines = dict(_core.toml_spans(text))
    assert lines["flows",] == 1
    assert lines["flows", 1] == 3
    assert lines["flows", 1, "rtt"] == 4
    assert lines["flows", 1, "rtt", 0] == 5
    with pytest.raises(ValueError, match="line 2"):
        _core.toml_spans("a = 1\nb = ")


def test_the_values_of_all_cards_are_what_python_reads() -> None:
    texts = [path.read_text("utf-8") for path in sorted(Path(algorithms.__file__).parent.glob("*/*.toml"))]
    texts.append(
        'a = [[1, -2.5e-3], [], "\\u00e4"]\nb.c = { d = true, e = inf }\n[[f]]\n[[f.g]]\nh = 9223372036854775807\n[f.i]'
    )
    assert len(texts) > 40
    for text in texts:
        assert json.dumps(_core.toml_values(text)) == json.dumps(tomllib.loads(text))


@pytest.mark.parametrize(
    "text", ["1979-05-27", "07:32:00.5", "1979-05-27T07:32:00", "1979-05-27 07:32:00Z", "1979-05-27T00:32:00.999-07:00"]
)
def test_dates_and_times_are_what_python_reads(text: str) -> None:
    assert _core.toml_values(f"a = {text}") == tomllib.loads(f"a = {text}")


@pytest.mark.parametrize("text", ["a = 1\nb = ", "a = 1979-13-27", "a = 1\na = 2", "a = 9223372036854775808"])
def test_missing_values_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="\\S"):
        _core.toml_values(text)
