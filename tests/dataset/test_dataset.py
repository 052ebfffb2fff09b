import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import synthetic

from ackclock.dataset import Dataset, Spool, folders, manifests, tables
from ackclock.errors import InputError


def small(seed: int = 1) -> Dataset:
    plan = synthetic.plan(rate_bps=1e7, duration_s=10)
    rows = {"flows": synthetic.flows(2), "events": synthetic.drops([1.0, 2.0], [0, 1]), "links": synthetic.link()}
    return synthetic.dataset(plan, rows, seed)


def same(one: Dataset, other: Dataset) -> bool:
    return all(one.frame(name).equals(other.frame(name)) for name in tables.TABLES)


def test_every_table_has_its_schema_even_when_empty() -> None:
    data = Dataset({"runs": []}, {})
    for name in tables.TABLES:
        assert data.frame(name).schema == tables.schema(name)
        assert data.scan(name).collect_schema() == tables.schema(name)


def test_sentinels_become_null_only_where_null_is_possible() -> None:
    spool = Spool(names=synthetic.NAMES)
    spool.append(
        "flow_samples",
        {
            "time_s": [0.1, 0.2],
            "flow": np.array([2**32 - 1, 1], np.uint32),
            "cwnd": np.array([10.0, math.nan]),
            "ssthresh": np.array([math.inf, 7.0]),
            "delivered_bytes": np.array([2**64 - 1, 5], np.uint64),
        },
    )
    spool.append(
        "events",
        {
            "time_s": np.array([0.5]),
            "flow": np.array([2**32 - 1], np.uint32),
            "link": np.array([0], np.uint32),
            "kind": np.array([4], np.uint8),
            "value": np.array([math.nan]),
        },
    )
    data = spool.dataset({"runs": []})
    samples = data.flow_samples
    assert samples["flow"].to_list() == [2**32 - 1, 1]
    assert samples["cwnd"].to_list() == [10.0, None]
    assert samples["ssthresh"].to_list() == [None, 7.0]
    assert samples["srtt_s"].to_list() == [None, None]
    assert samples["delivered_bytes"].to_list() == [None, 5]
    assert data.events.rows() == [(0, 0.5, None, 0, "timeout", None)]


def test_lists_with_none_strings_and_nested_lists() -> None:
    spool = Spool()
    spool.append("flows", synthetic.flows(2, size_bytes=[None, 9], fct_s=[math.nan, 1.5], source=["a", None]))
    spool.append("links", synthetic.link(sojourn_edges_s=np.array([0.1, 0.2]), sojourn_counts=[3, 4]))
    data = spool.dataset({"runs": []})
    assert data.flows["size_bytes"].to_list() == [None, 9]
    assert data.flows["fct_s"].to_list() == [None, 1.5]
    assert data.flows["source"].to_list() == ["a", None]
    assert data.links["sojourn_edges_s"].to_list() == [[0.1, 0.2]]
    assert data.links["sojourn_counts"].to_list() == [[3, 4]]


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        ("flow", {}, "unknown table 'flow'"),
        ("events", {"when": [1.0]}, "has no column when"),
        ("events", {"time_s": [1.0]}, "needs the column 'kind'"),
        ("events", {"time_s": np.array([1.0]), "kind": np.array([1], np.uint8)}, "came as codes"),
    ],
)
def test_what_a_table_has_not_is_rejected(table: str, columns: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Spool().append(table, columns)  # type: ignore[arg-type]


@pytest.mark.parametrize("spool_bytes", [1, 1 << 20])
def test_a_spool_gives_rows_other_texts_wherever_they_are(spool_bytes: int) -> None:
    spool = Spool(spool_bytes=spool_bytes)
    for first in (0, 2):
        numbers = np.array([first, first + 1], np.uint32)
        spool.append("flows", {**synthetic.flows(2), "flow": numbers, "congestion": ["reno", "reno"]})
    spool.revise("flows", "congestion", "flow", {1: "cubic", 3: "bbr"})
    rows = spool.dataset({"ackclock": "0", "runs": [{"run": 0}]}).flows.select("flow", "congestion").rows()
    assert rows == [(0, "reno"), (1, "cubic"), (2, "reno"), (3, "bbr")]


def test_spool_moves_rows_to_disk_and_loses_none(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "parts", spool_bytes=50_000)
    for start in range(0, 20_000, 500):
        times = np.arange(start, start + 500) * 0.01
        spool.append("flow_samples", {"time_s": times, "flow": np.zeros(500, np.uint32), "cwnd": times})
        assert spool._bytes <= 100_000
    data = spool.dataset({"runs": [{"run": 0, "point": 0, "seed": 1}]})
    assert len(list((tmp_path / "parts").iterdir())) > 3
    assert data.flow_samples["time_s"].to_list() == [n * 0.01 for n in range(20_000)]


def test_temporary_parts_vanish_with_the_dataset() -> None:
    spool = Spool(spool_bytes=10)
    spool.append("flows", synthetic.flows(3))
    data = Dataset.concat([spool.dataset({"runs": [{"run": 0, "point": 0, "seed": 1}]})])
    part = data.parts["flows"][0].source
    del spool
    assert isinstance(part, Path)
    assert data.flows.height == 3
    del data
    assert not part.exists()


def test_write_and_read_give_the_same_tables(tmp_path: Path) -> None:
    data = Dataset.concat([small(1), small(2)])
    again = Dataset.read(data.write(tmp_path / "result"))
    assert same(data, again)
    assert [run["seed"] for run in again.runs] == [1, 2]
    assert pl.read_parquet(tmp_path / "result" / "flows.parquet").equals(data.frame("flows"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["result"]


def test_concat_renumbers_only_on_collision(tmp_path: Path) -> None:
    both = Dataset.concat([small(1), small(2)])
    assert both.flows["run"].to_list() == [0, 0, 1, 1]
    third = Dataset.concat([both, small(3)])
    assert third.events["run"].unique().sort().to_list() == [0, 1, 2]
    assert [(run["run"], run["seed"]) for run in third.runs] == [(0, 1), (1, 2), (2, 3)]
    spool = Spool(run=7)
    spool.append("flows", synthetic.flows(1))
    apart = Dataset.concat([small(1), spool.dataset({"runs": [{"run": 7, "point": 0, "seed": 9}]})])
    assert apart.flows["run"].to_list() == [0, 0, 7]
    assert same(third, Dataset.read(third.write(tmp_path / "x")))


def test_replacing_keeps_the_users_files_and_drops_the_old_tables(tmp_path: Path) -> None:
    place = small(1).write(tmp_path / "result")
    (place / "notes.txt").write_text("mine")
    (place / "report.html").write_text("old")
    small(2).write(place)
    assert (place / "notes.txt").read_text() == "mine"
    assert not (place / "report.html").exists()
    assert Dataset.read(place).runs[0]["seed"] == 2


def test_a_failed_write_leaves_the_old_result(tmp_path: Path) -> None:
    place = small(1).write(tmp_path / "result")
    broken = replace(small(2), manifest={"ackclock": "0", "runs": [], "odd": object()})
    with pytest.raises(TypeError):
        broken.write(place)
    assert Dataset.read(place).runs[0]["seed"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["result"]


@pytest.mark.parametrize("swap", [folders._exchange, folders._swap_in_steps])
def test_both_ways_to_swap_folders(tmp_path: Path, swap) -> None:  # type: ignore[no-untyped-def]
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "name").write_text(folder.name)
    swap(one, other)
    assert ((one / "name").read_text(), (other / "name").read_text()) == ("other", "one")
    assert len(list(tmp_path.iterdir())) == 2


def test_something_else_is_left_single(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(InputError, match="is not an ackclock result"):
        small().write(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not an ackclock result"):
        small().write(tmp_path / "file")


BROKEN = {
    "missing": "no such result folder",
    "empty": "has no manifest.json",
    "text": "manifest.json: damaged",
    "other": "does not name an ackclock version",
    "future": f"in format 99; this ackclock reads format {manifests.FORMAT}",
    "no-runs": "lists no runs",
    "no-files": "manifest.json: damaged: it lists no files",
    "files-elsewhere": "manifest.json: damaged: it lists no files",
    "sweep": "found a sweep; expected the result of a run",
    "edited": r"manifest.json: damaged: it is not what was written \(SHA-256\)",
    "unsigned": "manifest.json: damaged: it has no SHA-256 of its own",
    "lost-part": r"flows.parquet/part-0000.parquet: missing",
    "cut-part": r"flows.parquet/part-0000.parquet: damaged: it is not what was written \(SHA-256\)",
    "more-parts": "flows.parquet/part-0001.parquet: additional: manifest.json does not list it",
    "swapped-parts": r"part-0000.parquet: damaged: it is not what was written \(SHA-256\) \(and 1 more\)",
    "fifo": "flows.parquet/part-0000.parquet: damaged: it cannot be read",
    "other-part": "its columns are not those of flows",
}


def _break_part(case: str, part: Path) -> None:
    match case:
        case "more-parts":
            part.with_name("part-0001.parquet").write_bytes(part.read_bytes())
        case "swapped-parts":
            other = part.parents[1] / "events.parquet" / part.name
            mine = part.read_bytes()
            part.write_bytes(other.read_bytes())
            other.write_bytes(mine)
        case "fifo":
            part.unlink()
            os.mkfifo(part)
        case "lost-part":
            part.unlink()
        case "cut-part":
            part.write_bytes(part.read_bytes()[:-20])


@pytest.mark.parametrize("case", BROKEN)
def test_reading_reports_in_one_line_what_is_wrong(tmp_path: Path, case: str) -> None:
    place = small().write(tmp_path / "result")
    manifest, part = place / "manifest.json", place / "flows.parquet" / "part-0000.parquet"
    valid = json.loads(manifest.read_text())
    files = valid.pop("files")
    valid = {key: value for key, value in valid.items() if key not in ("sha256", "format")}
    _break_part(case, part)
    match case:
        case "missing":
            place = tmp_path / "nowhere"
        case "empty":
            manifest.unlink()
        case "text":
            manifest.write_text("{")
        case "other":
            manifest.write_text('{"name": "npm"}')
        case "future":
            manifest.write_text(json.dumps({**valid, "format": 99}))
        case "no-runs":
            manifest.write_bytes(manifests.content({**valid, "runs": None}, files))
        case "no-files":
            manifest.write_bytes(manifests.content(valid, {"flows.parquet/part-0000.parquet": "0"}))
        case "files-elsewhere":
            manifest.write_bytes(manifests.content(valid, {"../" + name: sha for name, sha in files.items()}))
        case "sweep":
            manifest.write_bytes(manifests.content({**valid, "sweep": {}}, files))
        case "edited":
            manifest.write_text(manifest.read_text().replace('"seed": 1', '"seed": 2'))
        case "unsigned":
            manifest.write_text(json.dumps({**valid, "format": manifests.FORMAT, "files": files}))
        case "other-part":
            pl.DataFrame({"a": [1]}).write_parquet(part)
            manifests.write(place, valid, manifests.list_files(place))
    with pytest.raises(InputError, match=BROKEN[case]) as caught:
        Dataset.read(place)
    assert "\n" not in str(caught.value)


def test_damage_after_reading_is_an_input_error(tmp_path: Path) -> None:
    data = synthetic.sawtooth(flow_count=2, seeds=1, duration_s=5, warmup_s=1)
    place = data.write(tmp_path / "result")
    again = Dataset.read(place)
    part = place / "flow_samples.parquet" / "part-0000.parquet"
    content = bytearray(part.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    part.write_bytes(bytes(content))
    with pytest.raises(InputError, match="'flow_samples' cannot be read") as caught:
        _ = again.flow_samples
    assert "\n" not in str(caught.value)


def test_unwritable_place_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        small().write(tmp_path / "file" / "result")
