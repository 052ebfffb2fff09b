"""`ackclock new control` and `new queue`: the files that they write into a checkout, and their errors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from ackclock.cli.program import application
from ackclock.scaffold.new import CONTROL, QUEUE, Family

ROOT = Path(__file__).parents[2]
FAMILIES = {"control": CONTROL, "queue": QUEUE}
WRITTEN = {
    "control": (
        "crates/ackclock-congestion/src/mine.rs",
        "python/ackclock/algorithms/congestion/mine.toml",
        "scenarios/mine.toml",
        "modules/mine.c",
        "modules/mine.bpf.c",
    ),
    "queue": (
        f"{QUEUE.sources}/mine.rs",
        "python/ackclock/algorithms/queue/mine.toml",
        "scenarios/mine.toml",
    ),
}
#: The line in the list after which the new one comes.
LINE_BEFORE = {"control": "    lincubic,\n", "queue": "    fq_pie,\n"}


@pytest.fixture(params=FAMILIES)
def family(request) -> Family:
    return FAMILIES[request.param]


@pytest.fixture
def checkout(tmp_path):
    """The files of a checkout that `new` reads."""
    files = [CONTROL.list_file, CONTROL.sources / "window.rs", CONTROL.specs / "cubic.toml"]
    for path in (*files, QUEUE.list_file, QUEUE.sources / "fifo.rs", QUEUE.specs / "codel.toml"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


def new(family, *words):
    return CliRunner().invoke(application, ["new", family.command, *map(str, words)])


def files(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def rejected(family, *words):
    done = new(family, *words)
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_it_writes_every_file_and_a_line_in_the_list(family, checkout, monkeypatch):
    before, written, listed = files(checkout), WRITTEN[family.command], str(family.list_file)
    monkeypatch.chdir(checkout / family.sources)
    done = new(family, "mine")
    assert done.exit_code == 0, done.output
    after = files(checkout)
    assert set(after) - set(before) == set(written)
    assert [name for name in before if before[name] != after[name]] == [listed]
    line = LINE_BEFORE[family.command]
    assert after[listed] == before[listed].replace(line, f"{line}    mine,\n")
    assert [line.removeprefix("wrote ") for line in done.stdout.splitlines()] == [*written, f"{listed} (a line)"]
    assert done.stderr == f"next: make setup && ackclock check {family.command} mine\n"


def test_a_dry_run_prints_all_and_writes_nothing(family, checkout):
    before = files(checkout)
    shown = new(family, "mine", "--checkout", checkout, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert files(checkout) == before
    assert new(family, "mine", "--checkout", checkout).exit_code == 0
    assert all(files(checkout)[name] in shown.stdout for name in WRITTEN[family.command])


@pytest.mark.parametrize("name", ["Mine", "9lives", "a-b", "mod", "", "a" * 16, "../mine", "mine\n"])
def test_invalid_names_are_rejected(family, checkout, name):
    assert "expected up to 15 of" in rejected(family, name, "--checkout", checkout)


@pytest.mark.parametrize(
    ("name", "what"), [("cubic", "which is CUBIC"), ("red", "which is RED"), ("window", "src/window.rs")]
)
def test_names_of_algorithms_and_modules_are_rejected(checkout, name, what):
    assert what in rejected(CONTROL, name, "--checkout", checkout)


def test_names_of_modules_of_queues_are_rejected(checkout):
    assert "queue/fifo.rs" in rejected(QUEUE, "fifo", "--checkout", checkout)


@pytest.mark.parametrize(("command", "name"), [(command, name) for command in WRITTEN for name in WRITTEN[command]])
def test_existing_files_are_kept(checkout, command, name):
    (checkout / name).parent.mkdir(parents=True, exist_ok=True)
    (checkout / name).write_text("mine")
    before = files(checkout)
    message = rejected(FAMILIES[command], "mine", "--checkout", checkout)
    assert f"found {name}; expected a name that is not taken" in message
    assert files(checkout) == before


def test_other_folders_are_rejected(family, tmp_path, monkeypatch):
    assert "found no source checkout" in rejected(family, "mine", "--checkout", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert "--checkout DIR names one" in rejected(family, "mine")


def test_a_list_in_another_form_is_rejected(family, checkout):
    (checkout / family.list_file).write_text("pub mod reno;\n")
    assert "found no list" in rejected(family, "mine", "--checkout", checkout)


def test_either_all_files_are_written_or_none(family, checkout):
    (checkout / "scenarios").write_text("no folder")
    before = files(checkout)
    assert "cannot be written" in rejected(family, "mine", "--checkout", checkout)
    assert files(checkout) == before


TRAITS = {"control": "Controller", "queue": "Discipline"}
EXISTING = {"control": "reno.rs", "queue": "bfifo.rs"}


def functions(text, trait):
    """The functions of the file's `impl`, and the one that makes it."""
    (body,) = re.findall(rf"^impl {trait} for \w+ \{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL)
    made = re.search(r"^pub fn make\(.*?\{", text, re.MULTILINE | re.DOTALL)
    signatures = [made[0] if made else "", *re.findall(r"^    fn \w+\(.*?\)|^    \w+!\(\);", body, re.MULTILINE)]
    return [re.sub(r"\bmut (?=\w+:)|\b_\w+(?=:)", "", each) for each in signatures]


def test_the_rust_file_has_the_functions_of_an_existing_one(family, checkout):
    new(family, "mine", "--checkout", checkout)
    trait = TRAITS[family.command]
    existing = functions((ROOT / family.sources / EXISTING[family.command]).read_text(), trait)
    required = [signature for signature in existing if "fn is_fifo(" not in signature]  # only a FIFO says so
    assert functions((checkout / family.sources / "mine.rs").read_text(), trait) == required


@pytest.mark.oracle
def test_the_files_compile_without_warnings_and_their_tests_pass(family, tmp_path):
    """In a copy of the sources; their dependencies are built with the others'."""
    for name in ("Cargo.toml", "Cargo.lock", "crates"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    for each in FAMILIES.values():
        shutil.copytree(ROOT / each.specs, tmp_path / each.specs)
    assert new(family, "mine", "--checkout", tmp_path).exit_code == 0
    rust = tmp_path / family.sources / "mine.rs"
    subprocess.run(["rustfmt", "--edition", "2021", "--check", rust], check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / f"new-{family.command}"
    words = ["--offline", "--package", family.crate, "--target-dir", str(target)]
    subprocess.run(["cargo", "clippy", *words, "--all-targets", "--", "-D", "warnings"], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["cargo", "test", *words, "mine"], cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True
    )
    assert "2 passed" in done.stdout
