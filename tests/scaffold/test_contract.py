"""`ackclock check control` and `check queue`: the contract, and the messages for violations."""

from __future__ import annotations

import dataclasses
import os

import pytest
from click.testing import CliRunner

from ackclock import _core, algorithms
from ackclock.algorithms import code
from ackclock.cli.program import application
from ackclock.scaffold import contract
from ackclock.scaffold.new import CONTROL, QUEUE

LIST = CONTROL.list_file
SCENARIO = contract.SCENARIO.format(queue='{ discipline = "pfifo", limit = "1bdp" }', congestion="mine")


def ran(*words):
    return CliRunner().invoke(application, [str(word) for word in words])


def check(name="reno"):
    return ran("check", "control", name)


def test_cubic_satisfies_the_contract():
    done = check("cubic")
    assert done.exit_code == 0, done.output
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["ok"] * 4
    assert "cargo test -p ackclock-congestion cubic" in done.stderr


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"summary": " "}, "found no summary"),
        ({"references": ()}, "found no [[references]]"),
        ({"source": ""}, "parameters.beta: found no source"),
        ({"description": ""}, "parameters.beta: found no description"),
        ({"maximum": None}, "parameters.beta: found no maximum; expected one"),
        ({"kind": "boolean"}, "parameters.beta: found a minimum; expected none"),
        ({"choices": (1, 2)}, "parameters.beta: found choices"),
        ({"default": 7.0}, "parameters.beta: found 7.0; expected"),
    ],
)
def test_an_incomplete_spec(changes, what):
    spec = algorithms.spec("congestion", "aimd")
    beta = {key: value for key, value in changes.items() if key not in ("summary", "references")}
    own = {key: value for key, value in changes.items() if key not in beta}
    parameters = {**spec.parameters, "beta": dataclasses.replace(spec.parameters["beta"], **beta)}
    found = [*contract.spec_errors(dataclasses.replace(spec, parameters=parameters, **own))]
    assert any(each.startswith(what) for each in found), found


def test_code_that_accepts_any_parameters_violates_it(monkeypatch):
    monkeypatch.setattr(_core, "check_congestion", lambda *_: None)
    done = check("aimd")
    assert done.exit_code == 2
    assert "violated: the code takes the spec's parameters and no others" in done.stdout
    assert "a parameter that is not in the spec is accepted" in done.stdout
    assert "found 1 of the contract violated" in done.stderr


def test_code_that_rejects_the_spec_violates_it(monkeypatch):
    def reject(*_):
        raise ValueError("missing field `beta`")

    monkeypatch.setattr(_core, "check_congestion", reject)
    assert "the values of the spec are rejected: missing field `beta`" in check().stdout


def test_invalid_windows_violate_it(monkeypatch):
    monkeypatch.setattr(_core, "check_contract", lambda *_: "history 3: cwnd 0 after step 7")
    done = check()
    assert done.exit_code == 2
    assert f"violated: windows, thresholds and rates are valid in {contract.HISTORIES} random histories" in done.stdout
    assert "    history 3: cwnd 0 after step 7" in done.stdout


def test_a_violation_is_described():
    broken = _core.check_contract("reno", '{"beta": 1}', 1)
    assert broken is not None
    assert "unknown field `beta`" in broken
    assert _core.check_contract("reno", '{"slow_start": "standard"}', 5) is None


def test_runs_that_differ_violate_it(monkeypatch):
    from ackclock.engines.packet import PacketEngine

    run, seeds = PacketEngine.run, iter((1, 2))
    monkeypatch.setattr(PacketEngine, "run", lambda self, plan, _: run(self, plan, next(seeds)))
    assert "two runs with the same seed differ in the table" in check().stdout


def test_algorithms_of_other_engines_are_rejected():
    only_linux = check("veno")
    assert only_linux.exit_code == 2
    assert "which only real kernels have" in only_linux.stderr
    unknown = check("renno")
    assert unknown.exit_code == 2
    assert 'found "renno"; expected "reno"' in unknown.stderr


class TestASpecWithoutCode:
    """It is reason in one line wherever the control is asked for."""

    @pytest.fixture(autouse=True)
    def checkout(self, tmp_path, monkeypatch, spec_without_code):
        for path in (LIST, code.SOURCES / "mine.rs"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text("controllers! {\n    mine,\n    reno,\n}\n")
        monkeypatch.setattr(code, "CHECKOUT", tmp_path)
        return tmp_path

    def reason(self):
        return code.reason(algorithms.spec("congestion", "mine"))

    def test_check(self):
        done = check("mine")
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert "the spec mine has no code in this build of ackclock: " in done.stderr
        assert "mine.rs is not compiled yet; `make setup` builds it" in done.stderr

    def test_show(self):
        shown = ran("show", "mine").stdout
        assert "Note: the spec mine has no code in this build" in shown
        assert "Note" not in ran("show", "reno").stdout

    def test_run(self, tmp_path):
        (tmp_path / "mine.toml").write_text(SCENARIO)
        done = ran("run", tmp_path / "mine.toml", "--out", tmp_path / "out")
        assert (done.exit_code, done.stderr.count("\n")) == (3, 1)
        assert 'no congestion control "mine": ' in done.stderr
        assert "`make setup` builds it" in done.stderr
        assert not (tmp_path / "out").exists()

    def test_the_missing_part_is_named(self, checkout):
        (checkout / LIST).write_text("controllers! {\n    reno,\n}\n")
        assert "found no line mine in controllers!" in self.reason()
        (checkout / code.SOURCES / "mine.rs").unlink()
        assert "found no crates/ackclock-congestion/src/mine.rs" in self.reason()
        (checkout / LIST).unlink()
        assert "expected a spec of this version" in self.reason()

    def test_code_that_is_older_than_the_build_is_in_it(self, checkout):
        (built := checkout / "python/ackclock/_core.abi3.so").parent.mkdir(parents=True)
        built.touch()
        for path in (LIST, code.SOURCES / "mine.rs"):
            os.utime(checkout / path, (1, 1))
        assert self.reason() == ""
        assert code.stale("mine") == ""
        os.utime(checkout / code.SOURCES / "mine.rs", None)
        os.utime(built, (2, 2))
        assert code.stale("mine") == "crates/ackclock-congestion/src/mine.rs"
        assert "not compiled yet" in self.reason()


@pytest.mark.parametrize("name", ["pfifo", "bfifo", "fq_codel", "dualpi2"])
def test_queue_disciplines_satisfy_the_contract(name):
    done = ran("check", "queue", name)
    assert done.exit_code == 0, done.output
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["ok"] * 3
    assert f"cargo test -p {QUEUE.crate} {name}" in done.stderr


def test_a_queue_that_accepts_any_parameters_violates_it(monkeypatch):
    monkeypatch.setattr(_core, "check_queue", lambda *_: None)
    done = ran("check", "queue", "codel")
    assert done.exit_code == 2
    assert "violated: the code takes the spec's parameters and no others" in done.stdout
    assert "a text for target_s is accepted" in done.stdout


def test_a_queue_that_is_not_compiled_is_rejected(monkeypatch):
    monkeypatch.setattr(_core, "QUEUE_DISCIPLINES", [])
    done = ran("check", "queue", "codel")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "whose Rust file is not compiled; `make setup` builds it" in done.stderr


def test_a_folder_called_control_is_still_checked(tmp_path):
    done = ran("check", tmp_path / "control")
    assert done.exit_code == 2
    assert "found no such folder; expected a result" in done.stderr
