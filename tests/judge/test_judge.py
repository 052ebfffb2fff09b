"""The judge against logs of an independent model: every seeded mistake is found, and none where there is none."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
import quic_model as model
from click.testing import CliRunner

from ackclock import judge, qlog
from ackclock.judge import Judgement

#: Worlds without the application's pauses: of a larger window, and of a longer path.
FAST = model.World(rate_bps=2e7, rtt_s=0.05, buffer_p=60, duration_s=8.0, slow=(), pauses=(), marks=())
LONG = model.World(rate_bps=8e6, rtt_s=0.15, buffer_p=100, duration_s=15.0, slow=(), pauses=(), marks=())

KINDS = ("reno", "cubic")


@cache
def judged(kind: str, mutation: str = "", as_kind: str = "") -> Judgement:
    """Return the judgement of a log of the model."""
    log = qlog.parse(Path("model.sqlog"), model.log(kind, mutation))
    (connection,) = qlog.connections(log)
    return judge.judge_connection(connection, as_kind or kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_clean_controller_has_no_deviation(kind):
    result = judged(kind)
    assert result.deviations == []
    assert result.verdict == "agrees"
    assert result.agreed > 2000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("world", [FAST, LONG], ids=["fast", "long"])
def test_other_worlds_have_none_either(kind, world):
    (connection,) = qlog.connections(qlog.parse(Path("model.sqlog"), model.log(kind, world=world)))
    result = judge.judge_connection(connection, kind)
    assert result.deviations == []
    assert result.agreed > 2000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mutation", model.MUTATIONS)
def test_each_seeded_mistake_breaks_its_rule(kind, mutation):
    found = judged(kind, mutation).deviations
    assert found, "no deviation"
    # What follows from the mistake may break other rules; it is the first, or the one that is broken most often.
    rules = [one.rule for one in found]
    assert {rules[0], max(rules, key=rules.count)} & model.MUTATIONS[mutation]
    assert "RFC" in found[0].section


def test_a_wrong_decrease_is_reported_with_both_windows():
    """The model keeps 0.65 of its window instead of 0.5."""
    first = judged("reno", "beta-high").deviations[0]
    assert first.found == pytest.approx(1.3 * first.expected_high, rel=0.06)
    assert "7.3.2" in first.section


def test_the_other_specification_is_recognised():
    assert {one.rule for one in judged("cubic", as_kind="reno").deviations} & {"reduction", "avoidance"}
    assert judged("reno", as_kind="cubic").verdict == "deviates"


def test_a_log_without_windows_is_rejected_in_one_line(tmp_path):
    path = tmp_path / "empty.sqlog"
    lines = [line for line in model.log("reno").split("\x1e") if "metrics_updated" not in line and line][:200]
    path.write_text("".join(f"\x1e{line}" for line in lines))
    result = _run(str(path), "--as", "reno")
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    assert "congestion windows" in result.output


def test_missing_datagram_size_is_noted():
    log = model.log("reno").replace('"max_datagram_size": 1200', '"other": 1')
    (connection,) = qlog.connections(qlog.parse(Path("model.sqlog"), log))
    assert any("datagram size" in note for note in judge.judge_connection(connection, "reno").notes)


def test_command_prints_rule_section_and_windows(tmp_path):
    path = tmp_path / "server.sqlog"
    path.write_text(model.log("reno", "beta-high"))
    result = _run(str(path), "--as", "reno")
    assert result.exit_code == 1
    assert "reduction" in result.stdout
    assert "RFC 9002 section 7.3.2" in result.stdout
    printed = json.loads(_run(str(path), "--as", "reno", "--json").stdout)
    assert printed[0]["verdict"] == "deviates"
    assert printed[0]["deviations"][0]["rule"] == "reduction"


def test_command_exits_with_0_without_a_deviation(tmp_path):
    path = tmp_path / "server.sqlog"
    path.write_text(model.log("cubic"))
    assert _run(str(path), "--as", "cubic").exit_code == 0


def test_several_logs_are_counted_by_verdict(tmp_path):
    paths = [tmp_path / f"{kind}.sqlog" for kind in KINDS]
    for kind, path in zip(KINDS, paths, strict=True):
        path.write_text(model.log(kind))
    result = _run(*map(str, paths), "--as", "cubic")
    assert result.exit_code == 1
    assert f"{paths[0]}:\n" in result.output
    assert "2 logs, 2 connections: agrees 1, deviates 1, undecided 0\n" in result.output
    records = json.loads(_run(*map(str, paths), "--as", "cubic", "--json").output)
    verdicts = {Path(record["file"]).stem: record["verdict"] for record in records}
    assert verdicts == {"reno": "deviates", "cubic": "agrees"}


def test_a_log_that_cannot_be_judged_is_named_after_the_others(tmp_path):
    good, bad = tmp_path / "good.sqlog", tmp_path / "bad.sqlog"
    good.write_text(model.log("cubic"))
    bad.write_text("{")
    result = _run(str(bad), str(good), "--as", "cubic")
    assert result.exit_code == 2
    assert "Agrees: CUBIC" in result.output
    assert result.output.splitlines()[-1].startswith(f"{bad}:1: found broken JSON")


def test_a_specification_without_rules_is_an_error(tmp_path):
    path = tmp_path / "server.sqlog"
    path.write_text(model.log("reno"))
    result = _run(str(path), "--as", "vegas")
    assert result.exit_code == 2
    assert result.output.count("\n") == 1


def _run(*arguments: str):
    from ackclock.cli import program

    return CliRunner().invoke(program.application, ["judge", *arguments])


@pytest.mark.parametrize("kind", KINDS)
def test_millisecond_timestamps_suffice(kind):
    """An acknowledgement and the window of the one before then have the same time."""
    text = re.sub(r'"time": (\d+)\.\d+', r'"time": \1', model.log(kind))
    (connection,) = qlog.connections(qlog.parse(Path("model.sqlog"), text))
    result = judge.judge_connection(connection, kind)
    assert result.deviations == []
    assert result.agreed > 1000


def test_a_sender_that_does_not_pace_does_not_deviate():
    text = re.sub(r'"pacing_rate": \d+', '"pacing_rate": 11000000000', model.log("reno"))
    (connection,) = qlog.connections(qlog.parse(Path("model.sqlog"), text))
    assert judge.judge_connection(connection, "reno").deviations == []
