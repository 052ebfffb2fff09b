"""A command replaces results of its own kind only."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import synthetic
from click.testing import CliRunner
from small_networks import dumbbell

from ackclock.cli.program import application
from ackclock.dataset import Dataset, manifests, tables
from ackclock.dataset.result_kind import Kind, kind
from ackclock.errors import InputError

SCENARIO = f"""\
duration = "1s"
repeats = 1
{dumbbell("1Mbit", "20ms", "4p")}
[[flows]]
congestion = "cubic"
"""

COMMANDS = {
    Kind.RUN: ("run", "s.toml", "--no-report", "--out"),
    Kind.SWEEP: ("sweep", "s.toml", "--no-report", "--jobs", "1", "--out"),
    Kind.COMPARISON: ("compare", "s.toml", "--engine", "packet,fluid", "--no-report", "--out"),
    Kind.REPRODUCTION: ("reproduce", "G.resp", "--quick", "--out"),
}


def made(folder: Path, what: Kind) -> Path:
    """A folder of that kind, as far as its manifest says."""
    folder.mkdir(parents=True)
    keys = {Kind.SWEEP: "sweep", Kind.COMPARISON: "comparison", Kind.REPRODUCTION: "reproduction"}
    about = {"ackclock": "0.1.0", **({keys[what]: {}} if what in keys else {"runs": []})}
    (folder / "manifest.json").write_bytes(manifests.content(about, {}))
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCENARIO)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("there", [*COMMANDS, Kind.OTHER, Kind.DAMAGED])
def test_another_kind_is_rejected_before_anything_runs(here, command, there):
    if there is command:
        return
    folder = here / "out" / "G.resp" if command is Kind.REPRODUCTION else here / "out"
    if there in COMMANDS:
        made(folder, there)
    else:
        folder.mkdir(parents=True)
        (folder / ("manifest.json" if there is Kind.DAMAGED else "thesis.tex")).write_text("{")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = CliRunner().invoke(application, [*COMMANDS[command], "out"])
    expected = f"found {there.value}, which is left alone; expected another folder (--out)"
    assert (done.exit_code, done.stderr.strip()) == (2, f"{folder.relative_to(here)}: {expected}")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_a_folder_is(tmp_path):
    assert kind(tmp_path) is Kind.EMPTY
    assert kind(tmp_path / "nowhere") is Kind.NOTHING
    for what in COMMANDS:
        assert kind(made(tmp_path / what.name, what)) is what
    (tmp_path / "link").symlink_to("RUN")
    assert kind(tmp_path / "link") is Kind.RUN
    (tmp_path / "file").write_text("")
    assert kind(tmp_path / "file") is Kind.OTHER
    for text, what in (('{"name": "npm"}', Kind.OTHER), ("[]", Kind.OTHER), ("[" * 10**5, Kind.DAMAGED)):
        (tmp_path / "RUN" / "manifest.json").write_text(text)
        assert kind(tmp_path / "RUN") is what


@pytest.mark.parametrize(
    ("mark", "what"), [("comparison.json", Kind.COMPARISON), ("reproduced.csv", Kind.REPRODUCTION)]
)
def test_folders_of_format_2_without_a_manifest(tmp_path, mark, what):
    (tmp_path / mark).write_text("")
    assert kind(tmp_path) is what


def test_what_a_kill_leaves_of_a_folder_is_as_good_as_empty(tmp_path):
    (tmp_path / ".lock").write_text("")
    (tmp_path / ".ackclock-0123456789abcdef").mkdir()
    assert kind(tmp_path) is Kind.EMPTY


@pytest.mark.parametrize("command", [Kind.RUN, Kind.SWEEP, Kind.COMPARISON])
def test_its_own_kind_is_replaced_and_notes_stay(here, command):
    for _ in range(2):
        done = CliRunner().invoke(application, [*COMMANDS[command], "out"])
        assert done.exit_code == 0, done.output
        (here / "out" / "notes.txt").write_text("mine")
    assert (here / "out" / "notes.txt").read_text() == "mine"
    assert kind(here / "out") is command
    result = json.loads((here / "out" / "manifest.json").read_text())
    assert result["format"] == manifests.FORMAT
    assert result["command"]


def test_a_result_with_fewer_texts_than_today_is_read(tmp_path):
    """Kinds of events are added at the end: what was written before is read as if it had been written now."""
    folder = synthetic.unplanned().write(tmp_path / "old")
    part = folder / "events.parquet" / "part-0000.parquet"
    events = pl.read_parquet(part)
    fewer = pl.Enum(tables.EVENT_KINDS[:12])
    events.with_columns(pl.col("kind").cast(fewer)).write_parquet(part)
    manifest = {key: value for key, value in manifests.read(folder).about.items() if key != "files"}
    (folder / "manifest.json").unlink()
    manifests.write(folder, manifest, manifests.list_files(folder))
    read = Dataset.read(folder)
    assert read.events.equals(synthetic.unplanned().events)
    other = pl.Enum(["loss", *tables.EVENT_KINDS[:12][:1], "retransmission"])
    events.with_columns(pl.col("kind").cast(other)).write_parquet(part)
    (folder / "manifest.json").unlink()
    manifests.write(folder, manifest, manifests.list_files(folder))
    with pytest.raises(InputError, match="its column kind is Enum"):
        Dataset.read(folder)
