"""Rates that follow a trace: what files say, what is wrong with them, and that a plan is complete."""

from __future__ import annotations

import hashlib
import runpy
import tomllib
from pathlib import Path

import pytest
from changed import changed

import ackclock as ac
from ackclock.errors import ScenarioError
from ackclock.input import source
from ackclock.plan import Plan
from ackclock.scenario import planning

TEXT = """
duration = "4s"
[network]
topology = "dumbbell"
rate = { trace = "a.trace" }
rtt = "40ms"
queue = { discipline = "pfifo", limit = "1bdp" }
[[flows]]
congestion = "reno"
"""

RATES = "time_s,rate_bps\n0,8e6\n1,0\n1.5,2e6\n2,\n"


def written(folder: Path, content: str | bytes, text: str = TEXT) -> Path:
    (folder / "a.trace").write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "s.toml").write_text(text, encoding="utf-8")
    return folder / "s.toml"


def problem(path: Path) -> str:
    with pytest.raises(ScenarioError) as raised:
        planning.load(path).plan()
    (line,) = str(raised.value).splitlines()
    return line


def test_a_csv_is_rates_until_its_end(tmp_path):
    link = planning.load(written(tmp_path, RATES)).plan().bottleneck_link
    assert link.trace.course == {"kind": "rates", "at_s": [0.0, 1.0, 1.5], "rate_bps": [8e6, 0.0, 2e6]}
    assert (link.trace.period_s, link.rate_bps) == (2.0, 4.5e6)
    assert link.trace.sha256 == hashlib.sha256(RATES.encode()).hexdigest()


def test_without_an_end_the_last_rate_lasts_as_long_as_the_one_before(tmp_path):
    link = planning.load(written(tmp_path, "time_s,rate_bps\n0,1e6\n1,2e6\n3,4e6\n")).plan().bottleneck_link
    assert (link.trace.period_s, link.rate_bps) == (5.0, (1 + 4 + 8) * 1e6 / 5)


def test_a_limit_in_bdp_is_that_of_the_mean_rate(tmp_path):
    """4.5 Mb/s and 40 ms are 22 500 bytes, 14 packets of 1514."""
    link = planning.load(written(tmp_path, RATES)).plan().bottleneck_link
    assert link.queue.parameters["limit_packets"] == 14


def test_mahimahi_s_lines_are_opportunities_that_carry_frames_too(tmp_path):
    """Four in 10 ms, of 1500 bytes and a frame of 14 each."""
    link = planning.load(written(tmp_path, "2\r\n2\r\n5\r\n\r\n10\r\n")).plan().bottleneck_link
    assert link.trace.course == {"kind": "opportunities", "at_ms": [2, 2, 5, 10], "bytes": 1500}
    assert link.trace.period_s == 0.01
    assert link.rate_bps == pytest.approx(8 * 4 * 1514 / 0.01)


def test_a_plan_is_restored_from_its_json_and_from_its_text(tmp_path):
    """Without the file: the text has what it held."""
    made = planning.load(written(tmp_path, RATES)).plan()
    assert Plan.from_dict(made.to_dict()).links == made.links
    assert ac.loads(made.scenario_text).plan().links == made.links


def test_a_sweep_has_a_trace_for_each_point(tmp_path):
    (tmp_path / "b.trace").write_text("1\n", encoding="utf-8")
    text = changed(TEXT, ('rate = { trace = "a.trace" }\n', ""))
    text += '[sweep]\n"network.rate" = [{ trace = "a.trace" }, { trace = "b.trace" }, "1Mbit"]\n'
    loaded = planning.load(written(tmp_path, RATES, text))
    traces = [point.plan.bottleneck_link.trace for point in loaded.points()]
    assert [trace and trace.file for trace in traces] == ["a.trace", "b.trace", None]


WRONG = {
    "no number": ("1\nx\n", 's.toml:5: network.rate: found "x" in line 2 of a.trace; expected a whole number'),
    "no order": ("5\n4\n", 'found "4" in line 2 of a.trace, after 5; expected times in order'),
    "a negative time": ("-1\n", 'found "-1" in line 1 of a.trace; expected a whole number of milliseconds'),
    "a period of nothing": ("0\n", "found 0 in line 1 of a.trace; expected a period above 0 ms"),
    "nothing": ("\n\n", "found an empty a.trace; expected lines of milliseconds (mahimahi's format), or a CSV"),
    "another header": ("time,rate\n0,1\n", 'found "time,rate" in line 1 of a.trace; expected "time_s,rate_bps"'),
    "only a header": ("time_s,rate_bps\n", "found no line after line 1 of a.trace; expected a time and a rate"),
    "a word": ("time_s,rate_bps\n0,fast\n", 'found "fast" in line 2 of a.trace; expected a rate in bit/s'),
    "not a number": ("time_s,rate_bps\n0,nan\n", 'found "nan" in line 2 of a.trace; expected a rate in bit/s'),
    "three numbers": ("time_s,rate_bps\n0,1,2\n", 'found "0,1,2" in line 2 of a.trace; expected 2 numbers'),
    "a late beginning": ("time_s,rate_bps\n1,1e6\n", "found 1 s in line 2 of a.trace; expected 0 s"),
    "a time twice": ("time_s,rate_bps\n0,1\n0,2\n", 'found "0,2" in line 3 of a.trace, after 0; expected times'),
    "an end before the last": ("time_s,rate_bps\n0,1\n2,2\n1,\n", 'found "1," in line 4 of a.trace, after 2'),
    "no rate at all": ("time_s,rate_bps\n0,0\n1,0\n", "found a mean of 0 bit/s in a.trace; expected a rate above 0"),
    "a column twice": ("time_s,rate_bps,rate_mbps\n0,1,1\n", 'found "time_s,rate_bps,rate_mbps" in line 1 of a.trace'),
    "no time first": (
        "rate_bps,time_s\n0,1\n",
        'found "rate_bps,time_s" in line 1 of a.trace; expected "time_s,rate_bps"',
    ),
    "no rates": (
        "time_s,delay_s\n0,1\n",
        "found no column of rates in a.trace; expected a column rate_bps, or the rate",
    ),
    "a sure loss and more": ("time_s,rate_bps,loss\n0,1,1.5\n", 'found "1.5" in line 2 of a.trace; expected a loss'),
    "picoseconds": ("time_s,rate_bps\n0,1e6\n1e-12,\n", "found a period of 1e-12 s in a.trace; expected 0.001 s or"),
    "bytes": (b"\xff\xfe\x00\x01'''\n", "in line 1 of a.trace; expected a whole number of milliseconds"),
}


@pytest.mark.parametrize(("content", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_trace_is_one_line(tmp_path, content, expected):
    assert expected in problem(written(tmp_path, content))


def test_a_missing_file_is_reported_at_its_key(tmp_path):
    path = written(tmp_path, "1\n", changed(TEXT, ("a.trace", "b.trace")))
    assert 's.toml:5: network.rate.trace: found "b.trace": ' in problem(path)


def test_a_trace_of_ten_mebibytes_is_read(tmp_path):
    times = "".join(f"{at_ms}\n" for at_ms in range(1, 1_600_000))
    assert len(times) > 10 << 20
    assert ac.load(written(tmp_path, times)).plan().bottleneck_link.trace.period_s == 1599.999


@pytest.mark.parametrize("text", ["", "1\n", "\n1\n", "'", "1''\n", "'''", '"\\', "é\x7f\u2028\n", "a\tb\n", "\x01"])
def test_contents_of_files_are_stored_as_they_are(text):
    stored = source.contents_table({"a.trace": text, 'b "\\\x7f': "1"})
    assert tomllib.loads(stored)["traces"] == {"a.trace": text, 'b "\\\x7f': "1"}
    assert source.Source("", stored).toml()["traces"]["a.trace"] == text


def test_a_scenario_text_has_no_files():
    with pytest.raises(ScenarioError, match=r"network.rate: found \"a.trace\"; expected a trace in a table \[traces\]"):
        ac.loads(TEXT).plan()


@pytest.mark.parametrize("rate", ['{ trace = "a.trace", speed = 2 }', "{ trace = 1 }", "{}"])
def test_a_table_of_something_else_is_no_rate(rate):
    with pytest.raises(ScenarioError, match="expected a rate such as"):
        ac.loads(changed(TEXT, ('{ trace = "a.trace" }', rate))).plan()


def test_another_trace_leaves_the_scenario_as_it_was(tmp_path):
    swept = planning.load(written(tmp_path, RATES, f'{TEXT}[sweep]\nwarmup = ["1s"]\n')).with_({"repeats": 2})
    other = swept.with_({"traces": {"a.trace": "time_s,rate_bps\n0,1e6\n"}})
    rates = [next(loaded.points()).plan.bottleneck_link.rate_bps for loaded in (other, swept)]
    assert rates == [1e6, 4.5e6]


def test_a_rate_that_follows_a_trace_does_not_change_besides(tmp_path):
    text = TEXT + '[[network.changes]]\nat = "1s"\nlink = "bottleneck"\nrate = "1Mbit"\n'
    assert "network.changes[0].rate: found 1e+06 bit/s; expected no rate" in problem(written(tmp_path, RATES, text))


LEO = "time_ms,rate_mbps,delay_ms,loss\n0,8,20,0\n1000,4,35,0.01\n1500,4,35,0.02\n2000,,,\n"


def test_a_trace_of_delay_and_loss_changes_the_link(tmp_path):
    """Over 4 s in two turns; what stays as it was is no change."""
    plan = planning.load(written(tmp_path, LEO)).plan()
    link = plan.bottleneck_link
    assert link.trace.course == {"kind": "rates", "at_s": [0.0, 1.0, 1.5], "rate_bps": [8e6, 4e6, 4e6]}
    found = [(change.at_s, change.delay_s, change.loss["probability"]) for change in plan.changes]
    turn = [(0.0, 0.02, 0.0), (1.0, 0.035, 0.01), (1.5, 0.035, 0.02)]
    assert found == turn + [(at_s + 2, delay_s, loss) for at_s, delay_s, loss in turn]


def test_a_trace_without_rates_has_the_scenario_s(tmp_path):
    text = changed(TEXT, ('trace = "a.trace" }', 'trace = "a.trace", rate = "3Mbit" }'))
    plan = planning.load(written(tmp_path, "time_s,delay_s\n0,0.01\n3,0.02\n6,\n", text)).plan()
    assert plan.bottleneck_link.trace.course == {"kind": "rates", "at_s": [0.0], "rate_bps": [3e6]}
    assert [(change.at_s, change.delay_s, change.loss) for change in plan.changes] == [
        (0.0, 0.01, None),
        (3.0, 0.02, None),
    ]
    assert "found a rate beside a.trace, which has one" in problem(written(tmp_path, RATES, text))


@pytest.mark.parametrize(("key", "what"), [('delay = "1ms"', "no delay"), ("loss = { every = 9 }", "none")])
def test_a_traced_link_accepts_no_change_of_the_traced_value(tmp_path, key, what):
    text = f'{TEXT}[[network.changes]]\nat = "1s"\nlink = "bottleneck"\n{key}\n'
    assert f"expected {what}: this link's follows a trace" in problem(written(tmp_path, LEO, text))


def test_a_trace_with_too_many_changes_is_rejected(tmp_path):
    text = changed(TEXT, ('duration = "4s"', 'duration = "1h"'))
    steps = "".join(f"{at_ms},1,{at_ms % 2}\n" for at_ms in range(100))
    line = problem(written(tmp_path, f"time_ms,rate_mbps,delay_ms\n{steps}", text))
    assert "duration: found traces with more than 200000 changes; expected a shorter duration" in line


TRACES = Path(__file__).parents[2] / "scenarios" / "traces"


def test_the_script_makes_the_stored_traces(tmp_path):
    made = runpy.run_path(str(TRACES / "make.py"), run_name="made")
    stored = [path for path in TRACES.iterdir() if path.suffix in (".csv", ".mahimahi")]
    stored.append(made["EVALUATION"] / "low-orbit.csv")
    made["main"].__globals__.update(HERE=tmp_path, EVALUATION=tmp_path)
    made["main"]()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in stored)
    assert all((tmp_path / path.name).read_bytes() == path.read_bytes() for path in stored)
