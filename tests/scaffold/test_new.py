"""`ackclock new control` and `new queue`: the files that they write into a checkout, and their errors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from ackclock import algorithms
from ackclock.algorithms import prototype as prototypes
from ackclock.cli.program import application
from ackclock.scaffold import contract
from ackclock.scaffold.new import CONTROL, QUEUE, TEMPLATES, Family

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
    paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


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


def test_the_spec_is_one(family):
    """Their Rust files are modules of the crates' tests."""
    text = (TEMPLATES / f"{family.command}.toml").read_text()
    family_name = {"control": "congestion", "queue": "queue"}[family.command]
    spec = algorithms.made(family_name, tomllib.loads(text.replace("$name", "mine")))
    assert not [*contract.spec_errors(spec)]


def test_the_walk_through_has_a_spec():
    blocks = re.findall(r"^```toml\n(name = .*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
    specs = [algorithms.made("congestion", tomllib.loads(block)) for block in blocks]
    assert [spec.name for spec in specs] == ["gaimd"]
    assert not [*contract.spec_errors(specs[0])]


def test_the_walk_through_has_the_rust_file_that_is_tested():
    text = (ROOT / CONTROL.sources / "walkthrough.rs").read_text()
    assert f"```rust\n{text}```" in (ROOT / "CONTRIBUTING.md").read_text()


PROTOTYPE = """
import ackclock as ac

@ac.congestion_control
class Tried:
    \"\"\"Reno that keeps more.\"\"\"

    def __init__(self, initial_window, *, kept: float = 0.5, rounds: int = 3, careful: bool = True):
        self.cwnd, self.ssthresh = initial_window, float("inf")

    def on_ack(self, ack):
        self.cwnd += self.of_reno(ack)

    def of_reno(self, ack):
        return 1 / self.cwnd

    def on_loss(self, loss):
        self.cwnd = max(2, self.cwnd / 2)

    def on_timeout(self, now_s, in_flight):
        self.cwnd = 1
"""


@pytest.fixture
def prototype(tmp_path):
    """A prototype, which leaves no name behind."""
    path = tmp_path / "tried.py"
    path.write_text(PROTOTYPE)
    before = dict(algorithms._USER_SUPPLIED)
    yield path
    algorithms._USER_SUPPLIED.clear()
    algorithms._USER_SUPPLIED.update(before)
    prototypes._PROTOTYPES.clear()
    algorithms.names.cache_clear()
    algorithms.spec.cache_clear()


def test_a_prototype_gives_its_name_parameters_and_methods(checkout, prototype):
    done = new(CONTROL, "--from", prototype, "--checkout", checkout)
    assert done.exit_code == 0, done.output
    assert done.stderr == "next: make setup && ackclock check control tried\n"
    after = files(checkout)
    rust = after[f"{CONTROL.sources}/tried.rs"]
    spec = algorithms.made("congestion", tomllib.loads(after[f"{CONTROL.specs}/tried.toml"]))
    assert spec.complete({}) == {"kept": 0.5, "rounds": 3, "careful": True}
    assert all(f"    {field},\n" in rust for field in ("kept: f64", "rounds: i64", "careful: bool"))
    assert "    // def on_loss(self, loss):\n    //     self.cwnd = max(2, self.cwnd / 2)\n    fn on_loss(" in rust
    assert rust.index("// def of_reno(self, ack):") < rust.index("impl Controller")
    assert functions(rust, "Controller") == functions((ROOT / CONTROL.sources / "reno.rs").read_text(), "Controller")


def test_a_name_or_a_prototype(checkout, prototype):
    assert "found nothing; expected NAME or --from" in rejected(CONTROL, "--checkout", checkout)
    assert "found NAME and --from" in rejected(CONTROL, "mine", "--from", prototype, "--checkout", checkout)


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
    of_fifos = ("fn is_fifo(", "fn take_peak(")  # only a FIFO has them
    required = [signature for signature in existing if not any(name in signature for name in of_fifos)]
    assert functions((checkout / family.sources / "mine.rs").read_text(), trait) == required


def copy_sources(tmp_path):
    for name in ("Cargo.toml", "Cargo.lock", "crates"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    for folder in (*(each.specs for each in FAMILIES.values()), "python/ackclock/scaffold"):
        shutil.copytree(ROOT / folder, tmp_path / folder)


def check_compiles(family, tmp_path, tests, name="mine"):
    """The Rust file compiles without warnings, and its tests pass; dependencies are built with the others'."""
    rust = tmp_path / family.sources / f"{name}.rs"
    subprocess.run(["rustfmt", "--edition", "2021", "--check", rust], check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / f"new-{family.command}"
    words = ["--offline", "--package", family.crate, "--target-dir", str(target)]
    subprocess.run(["cargo", "clippy", *words, "--all-targets", "--", "-D", "warnings"], cwd=tmp_path, check=True)
    done = subprocess.run(["cargo", "test", *words, name], cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True)
    assert f"{tests} passed" in done.stdout


@pytest.mark.oracle
def test_the_files_compile_without_warnings_and_their_tests_pass(family, tmp_path):
    copy_sources(tmp_path)
    assert new(family, "mine", "--checkout", tmp_path).exit_code == 0
    check_compiles(family, tmp_path, 2)


@pytest.mark.oracle
def test_a_prototypes_files_compile_without_warnings_and_their_test_passes(tmp_path, prototype):
    copy_sources(tmp_path)
    assert new(CONTROL, "--from", prototype, "--checkout", tmp_path).exit_code == 0
    check_compiles(CONTROL, tmp_path, 1, "tried")
