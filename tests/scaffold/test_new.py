"""`ackclock new control`: what it writes into a checkout, and what it refuses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from ackclock.cli.program import application
from ackclock.scaffold.checkout import CARDS, LIST

ROOT = Path(__file__).parents[2]
WRITTEN = (
    "crates/ackclock-congestion/src/mine.rs",
    "python/ackclock/algorithms/congestion/mine.toml",
    "scenarios/mine.toml",
    "modules/mine.c",
    "modules/mine.bpf.c",
)


@pytest.fixture
def checkout(tmp_path):
    """What of a checkout `new` looks at."""
    for path in (LIST, LIST.parent / "window.rs", CARDS / "cubic.toml"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


def new(*words):
    return CliRunner().invoke(application, ["new", "control", *map(str, words)])


def files(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def refusal(*words):
    done = new(*words)
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_it_writes_every_file_and_a_line_in_the_list(checkout, monkeypatch):
    before = files(checkout)
    monkeypatch.chdir(checkout / "crates" / "ackclock-congestion")
    done = new("mine")
    assert done.exit_code == 0, done.output
    after = files(checkout)
    assert set(after) - set(before) == set(WRITTEN)
    assert [name for name in before if before[name] != after[name]] == [str(LIST)]
    assert after[str(LIST)] == before[str(LIST)].replace("    lincubic,\n", "    lincubic,\n    mine,\n")
    assert [line.removeprefix("wrote ") for line in done.stdout.splitlines()] == [*WRITTEN, f"{LIST} (a line)"]


def test_a_dry_run_shows_all_and_writes_nothing(checkout):
    before = files(checkout)
    shown = new("mine", "--checkout", checkout, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert files(checkout) == before
    assert new("mine", "--checkout", checkout).exit_code == 0
    assert all(files(checkout)[name] in shown.stdout for name in WRITTEN)


@pytest.mark.parametrize("name", ["Mine", "9lives", "a-b", "mod", "", "a" * 16, "../mine", "mine\n"])
def test_what_is_no_name_is_refused(checkout, name):
    assert "expected up to 15 of" in refusal(name, "--checkout", checkout)


@pytest.mark.parametrize(
    ("name", "what"), [("cubic", "which is CUBIC"), ("red", "which is RED"), ("window", "src/window.rs")]
)
def test_what_is_taken_is_refused(checkout, name, what):
    assert what in refusal(name, "--checkout", checkout)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_that_is_there_stays(checkout, name):
    (checkout / name).parent.mkdir(parents=True, exist_ok=True)
    (checkout / name).write_text("mine")
    before = files(checkout)
    assert f"found {name}; expected a name that is not taken" in refusal("mine", "--checkout", checkout)
    assert files(checkout) == before


def test_what_is_no_checkout_is_refused(tmp_path, monkeypatch):
    assert "found no source checkout" in refusal("mine", "--checkout", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert "--checkout DIR names one" in refusal("mine")


def test_a_list_in_another_form_is_refused(checkout):
    (checkout / LIST).write_text("pub mod reno;\n")
    assert "found no list" in refusal("mine", "--checkout", checkout)


def test_where_a_file_cannot_be_written_nothing_is(checkout):
    (checkout / "modules").write_text("no folder")
    before = files(checkout)
    assert "cannot be written" in refusal("mine", "--checkout", checkout)
    assert files(checkout) == before


def functions(text):
    """The functions of the file's `impl Controller`, and what makes it."""
    (body,) = re.findall(r"^impl Controller for \w+ \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    made = re.search(r"^pub fn make\(.*?\{", text, re.MULTILINE | re.DOTALL)
    return made and made[0], re.findall(r"^    fn \w+\(.*?\)|^    \w+!\(\);", body, re.MULTILINE)


def test_the_rust_file_has_the_shape_of_a_control_that_is_there(checkout):
    new("mine", "--checkout", checkout)
    sources = LIST.parent
    assert functions((checkout / sources / "mine.rs").read_text()) == functions(
        (ROOT / sources / "reno.rs").read_text()
    )


@pytest.mark.oracle
def test_what_it_writes_compiles_without_a_warning_and_its_tests_pass(tmp_path):
    """In a copy of the sources; what they stand on is built with the others'."""
    for name in ("Cargo.toml", "Cargo.lock", "crates"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / CARDS, tmp_path / CARDS)
    assert new("mine", "--checkout", tmp_path).exit_code == 0
    rust = tmp_path / LIST.parent / "mine.rs"
    subprocess.run(["rustfmt", "--edition", "2021", "--check", rust], check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "new-control"
    words = ["--offline", "--package", "ackclock-congestion", "--target-dir", str(target)]
    subprocess.run(["cargo", "clippy", *words, "--all-targets", "--", "-D", "warnings"], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["cargo", "test", *words, "mine"], cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True
    )
    assert "2 passed" in done.stdout
