"""Bit flips, truncated, swapped, missing and additional parts: all are named, and no number comes of one."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import synthetic
from click.testing import CliRunner
from small_networks import dumbbell

import ackclock as ac
from ackclock.cli.program import application
from ackclock.dataset import Dataset, manifests
from ackclock.dataset.manifests import POINTS
from ackclock.errors import InputError
from ackclock.experiments.sweep import result

#: Damaged results, half of them runs and half sweeps, in a short form and in a long one.
CASES = (60, pytest.param(500, marks=pytest.mark.oracle))

SWEEP = f"""\
duration = "1s"
repeats = 2
{dumbbell("1Mbit", "20ms", "4p")}
[[flows]]
congestion = "cubic"
[sweep]
"network.queue.limit" = ["4p", "8p"]
"""


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """A run with captures, and a sweep."""
    place = tmp_path_factory.mktemp("whole")
    (place / "captures").mkdir()
    (place / "captures" / "seed-1.pcap").write_bytes(bytes(range(256)) * 8)
    data = Dataset.concat([synthetic.sawtooth(flow_count=2, seeds=1, duration_s=2, warmup_s=1) for _ in range(2)])
    data.write(place / "run", place / "captures")
    (place / "sweep.toml").write_text(SWEEP)
    ac.sweep(place / "sweep.toml", out=place / "sweep", jobs=1)
    return place


def flip(files: list[Path], draw: random.Random) -> set[Path]:
    (path,) = draw.sample(files, 1)
    content = bytearray(path.read_bytes())
    bit = draw.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(bytes(content))
    return {path}


def truncate(files: list[Path], draw: random.Random) -> set[Path]:
    (path,) = draw.sample(files, 1)
    path.write_bytes(path.read_bytes()[: draw.randrange(path.stat().st_size)])
    return {path}


def swap(files: list[Path], draw: random.Random) -> set[Path]:
    one, other = draw.sample(files, 2)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return {one, other} if first != second else set()


def remove(files: list[Path], draw: random.Random) -> set[Path]:
    (path,) = draw.sample(files, 1)
    path.unlink()
    return {path}


def add(files: list[Path], draw: random.Random) -> set[Path]:
    path = draw.choice([path for path in files if path.parent.suffix == ".parquet"])
    new = path.with_name(f"part-{draw.randrange(9000):04}.parquet")
    if new.exists():
        return set()
    shutil.copyfile(path, new)
    return {new}


def names_one_of(message: str, damaged: set[Path], folder: Path) -> bool:
    """Without its manifest, a folder is all that can be named."""
    names = [str(path.relative_to(folder)) for path in damaged]
    return any(name in message for name in names) or ("manifest.json" in names and str(folder) in message)


def views(folder: Path) -> list[str]:
    """Functions that read a whole result: each must fail, with this message."""
    said = []
    if folder.name == "run":
        readers = [lambda: Dataset.read(folder).metrics()]
    else:
        readers = [lambda: result.read(folder).as_dict(), *(lambda t=t: _scan(folder, t) for t in ("flows", "links"))]
    for read in readers:
        try:
            read()
        except InputError as error:
            said.append(str(error))
    return said


def _scan(folder: Path, name: str) -> None:
    result.read(folder).scan(name).collect()


@pytest.mark.parametrize("cases", CASES)
def test_all_damage_is_named(tmp_path, complete, cases):
    draw = random.Random(2)
    counts = dict.fromkeys((flip, truncate, swap, remove, add), 0)
    while sum(counts.values()) < cases:
        folder = tmp_path / draw.choice(("run", "sweep"))
        shutil.copytree(complete / folder.name, folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
        damage = draw.choice(list(counts))
        if damaged := damage(files, draw):
            counts[damage] += 1
            checked = manifests.verify(folder)
            assert checked.state == manifests.DAMAGED, (damage, damaged)
            named = {name for name in damaged if any(str(name.relative_to(folder)) in p for p in checked.problems)}
            assert named == damaged or folder / "manifest.json" in damaged
            assert list(manifests.find_results(tmp_path)) == [folder]
            captures = all(path.parent.name in ("captures", "runs.parquet") for path in damaged) and damage is not add
            said = views(folder)
            assert said or captures, "a number came of it"
            for message in said:
                assert "\n" not in message
                assert names_one_of(message, damaged, folder)
        shutil.rmtree(folder)
    assert min(counts.values()) > cases / 20


def test_reports_plots_and_comparisons_reject_it(tmp_path, complete):
    for name in ("run", "sweep"):
        shutil.copytree(complete / name, tmp_path / name)
    part = tmp_path / "run" / "flow_samples.parquet" / "part-0000.parquet"
    flip([part], random.Random(1))
    flip([tmp_path / "sweep" / POINTS], random.Random(1))
    for arguments in (["report", "run"], ["plot", "run", "cwnd"], ["report", "sweep"], ["plot", "sweep", "sweep"]):
        command, name, *more = arguments
        done = CliRunner().invoke(application, [command, str(tmp_path / name), *more])
        damaged = part if name == "run" else tmp_path / "sweep" / POINTS
        assert (done.exit_code, done.stderr.strip()) == (
            2,
            f"{damaged}: damaged: it is not what was written (SHA-256)",
        )


def test_what_is_not_ours_is_no_damage(tmp_path, complete):
    for name in ("run", "sweep"):
        shutil.copytree(complete / name, tmp_path / name)
        (tmp_path / name / "notes.txt").write_text("mine")
        (tmp_path / name / "report.html").write_text("made anew")
        assert manifests.verify(tmp_path / name).state == manifests.SOUND
    assert Dataset.read(tmp_path / "run").runs


def test_nothing_is_read_twice(tmp_path, complete, monkeypatch):
    """Reuse a hash while the file is unchanged; a recent file may change within a tick of the clock."""
    from ackclock.dataset import checksums

    shutil.copytree(complete / "run", tmp_path / "run")
    monkeypatch.setattr(checksums, "TICK_NS", -(10**18))
    Dataset.read(tmp_path / "run")
    digest, read = checksums.hashlib.file_digest, []
    monkeypatch.setattr(checksums.hashlib, "file_digest", lambda *given: read.append(given) or digest(*given))
    Dataset.read(tmp_path / "run")
    assert not read
    part = tmp_path / "run" / "flows.parquet" / "part-0000.parquet"
    part.write_bytes(part.read_bytes() + b"x")
    with pytest.raises(InputError, match="damaged"):
        Dataset.read(tmp_path / "run")
    assert len(read) == 1


def test_check_reports_a_line_for_each_result(tmp_path, complete):
    for name in ("run", "sweep"):
        shutil.copytree(complete / name, tmp_path / "archive" / name)
    (tmp_path / "archive" / "notes").mkdir()
    (tmp_path / "archive" / "notes" / "manifest.json").write_text('{"name": "of something else"}')

    def message_of(*arguments: str) -> tuple[int, list[str], str]:
        done = CliRunner().invoke(application, ["check", str(tmp_path / "archive"), *arguments])
        return done.exit_code, done.stdout.replace(f"{tmp_path}/", "").splitlines(), done.stderr.strip()

    status, lines, wrong = message_of()
    assert (status, wrong) == (0, "")
    assert lines[0].startswith("archive/run: sound: the result of a run, 9 files, ")
    assert lines[1].startswith("archive/sweep: sound: a sweep, ")
    assert len(lines) == 2
    part = tmp_path / "archive" / "run" / "captures" / "seed-1.pcap"
    part.write_bytes(b"")
    (tmp_path / "archive" / "sweep" / "manifest.json").unlink()
    status, lines, wrong = message_of()
    assert (status, wrong) == (2, "found damage in 2 of 2; expected results as they were written")
    assert lines == [
        "archive/run: damaged: captures/seed-1.pcap: damaged: it is not what was written (SHA-256)",
        "archive/sweep: damaged: not an ackclock result: it has no manifest.json; "
        "expected a folder that --out has made",
    ]
    _, lines, _ = message_of("--json")
    assert [(outcome["kind"], outcome["state"]) for outcome in map(json.loads, lines)] == [
        ("run", "damaged"),
        ("other", "damaged"),
    ]


def test_check_finds_nothing(tmp_path):
    for place, what in ((tmp_path, "no ackclock result in it"), (tmp_path / "nowhere", "no such folder")):
        done = CliRunner().invoke(application, ["check", str(place)])
        expected = f"{place}: found {what}; expected a result, or a folder with results"
        assert (done.exit_code, done.stderr.strip()) == (2, expected)
