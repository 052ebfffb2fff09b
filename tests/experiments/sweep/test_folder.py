"""The parts of a sweep on disk: a stop between any two writes loses nothing that is in a part, and leaves nothing."""

from __future__ import annotations

import contextlib
import json

import polars as pl
import pytest

import ackclock as ac
from ackclock.dataset import folders, manifests
from ackclock.experiments.sweep import folder as parts
from ackclock.experiments.sweep.folder import Parts, read_manifest, scan
from ackclock.experiments.sweep.spec import SweepSpec
from ackclock.system.files import is_temporary

ORDER = SweepSpec("name = 'x'", "x.toml", "packet", None, ("jain",), samples=False)


def rows(run: int) -> dict[str, pl.DataFrame]:
    """One run's: two flows, one link."""
    numbers = {"run": [run], "point": [run]}
    return {
        "flows": pl.DataFrame({"run": [run, run], "point": [run, run], "flow": [0, 1]}),
        "links": pl.DataFrame({**numbers, "link": [0]}),
        "runs": pl.DataFrame({**numbers, "seed": [1], "jain": [run / 10]}),
    }


class Stopped(BaseException):
    """Raised in place of the end of the process."""


@pytest.fixture
def stopping(monkeypatch):
    """Ends the process before the file of that number is renamed."""
    whole, left = folders.atomic_write, [10**9]

    def put(path, write, private):
        if left[0] == 0:
            write(private / path.name)
            raise Stopped
        left[0] -= 1
        whole(path, write, private)

    monkeypatch.setattr(folders, "atomic_write", put)
    return left


def begin(folder, wanted):
    with Parts(folder, ORDER) as opened:
        for run in range(wanted):
            if run not in opened.done:
                opened.add(rows(run))
                opened.write()
    return opened.done


@pytest.mark.parametrize("writes", range(1 + 4 * 4))
def test_a_stop_between_any_two_writes(tmp_path, stopping, writes):
    folder = tmp_path / "sweep"
    stopping[0] = writes
    with contextlib.suppress(Stopped):
        begin(folder, 4)
    complete = max(0, writes - 1) // 4
    stopping[0] = 10**9
    with Parts(folder, ORDER) as opened:
        assert opened.done == {*range(complete)}
        numbers = {path.name for path in folder.glob("runs.parquet/part-*")}
        assert {path.name for path in folder.glob("*.parquet/part-*")} == numbers
        assert sum(map(is_temporary, folder.rglob("*"))) == 1
    assert not any(map(is_temporary, folder.rglob("*")))
    assert begin(folder, 4) == {*range(4)}
    for table, count in (("runs", 4), ("links", 4), ("flows", 8)):
        files = read_manifest(folder).files
        assert scan(folder, table, files).collect()["run"].to_list() == sorted(
            run for run in range(4) for _ in range(count // 4)
        )


def test_parts_wait_for_their_time_and_hold_many_runs(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(parts.time, "monotonic", lambda: now[0])
    with Parts(tmp_path / "sweep", ORDER) as opened:
        for run in range(1000):
            now[0] += 1.0  # a second a run: in 1000 s a part after 2 s at first, after 1 % of the time later
            opened.add(rows(run))
        opened.write()
    files = sorted((tmp_path / "sweep" / "runs.parquet").iterdir())
    assert 100 < len(files) < 300
    assert pl.read_parquet(files[0]).height == 2
    assert pl.read_parquet(files[-2]).height == 10
    assert opened.done == {*range(1000)}


def test_another_format_is_rejected(tmp_path):
    begin(tmp_path / "sweep", 1)
    path = tmp_path / "sweep" / "manifest.json"
    path.write_text(json.dumps({"ackclock": "0.1.0", "format": 1, "sweep": ORDER.identity()}))
    with pytest.raises(
        ac.InputError, match=f"in format 1; this ackclock reads format {manifests.FORMAT}: run it again"
    ):
        Parts(tmp_path / "sweep", ORDER)


def test_a_damaged_part_is_reported_and_its_runs_are_repeated(tmp_path):
    folder = tmp_path / "sweep"
    begin(folder, 4)
    (folder / "links.parquet" / "part-0001.parquet").write_bytes(b"PAR1 and no more")
    (folder / "runs.parquet" / "part-0002.parquet").unlink()
    (folder / "flows.parquet" / "part-0009.parquet").write_bytes(b"from elsewhere")
    with pytest.warns(UserWarning, match="it is made again") as told, Parts(folder, ORDER) as opened:
        assert opened.done == {0, 3}
    assert [str(warning.message).removeprefix(f"{folder}/") for warning in told] == [
        "links.parquet/part-0001.parquet: damaged: it is not what was written (SHA-256); it is made again",
        "runs.parquet/part-0002.parquet: missing; it is made again",
    ]
    assert begin(folder, 4) == {0, 1, 2, 3}
    assert not manifests.read(folder, manifests.Kind.SWEEP).problems()
    files = read_manifest(folder).files
    assert sorted(scan(folder, "flows", files).collect()["run"]) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_damaged_manifest_is_rejected(tmp_path):
    folder = tmp_path / "sweep"
    begin(folder, 1)
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace("jain", "jaim"))
    with pytest.raises(ac.InputError, match=r"manifest.json: damaged: it is not what was written"):
        Parts(folder, ORDER)
