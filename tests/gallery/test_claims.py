"""Claims of papers: the language of their inequalities, the rule of their states, and the papers' files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_networks import dumbbell

from ackclock.cli.program import application
from ackclock.errors import InputError
from ackclock.gallery import ablation_runner, cases, claims, entries, find, page
from ackclock.gallery.inequalities import (
    CONFIRMED,
    CONFIRMED_IF,
    FAILS,
    INCONSISTENT,
    MODEL,
    STATES,
    UNDETERMINED,
    UNTESTABLE,
    Cell,
    Inequality,
    Interval,
    Outcome,
    state_of,
)

PAPERS = claims.papers()
CLAIMS = [claim for paper in PAPERS for claim in paper.claims]

ROWS = {
    "a": {"x": Interval(1, 2), "y": Interval(3, 4)},
    "b": {"": Interval(2.5, 2.5)},
    "c": {"x": Interval(0, 1.5), "y": None},
    "far apart": {"1 BDP": Interval(5, 6), "1 BDP, payload": Interval(7, 8)},
}


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("'a'['x'] < 'b'", True),
        ("'a'['y'] < 'b'", False),
        ("'a' < 'b'", False),  # in every case
        ("any('a' < 'b')", True),
        ("all('a' < 5)", True),
        ("'a'['x'] < 1.5", None),
        ("'a'['x'] < 'b' < 'a'['y'] < 4", None),
        ("'a'['x'] < 'b' < 'a'['y'] < 5", True),
        ("'b' <= 2.5", True),
        ("'b' < 2.5", False),
        ("'b' >= 2.5 > 'a'['x']", True),
        ("'c' < 'a'", None),  # overlap in x, no value in y
        ("'c'['x'] < 0 and 'c'['y'] < 1", False),
        ("'c'['x'] < 2 or 'c'['y'] < 1", True),
        ("not 'c'['y'] < 1", None),
        ("2 * 'a'['x'] - 1 <= 3", True),
        ("'a' / 'b' < 2", True),
        ("1 / 'c'['x'] < 9", None),  # a division by what may be 0
        ("abs('a'['x'] - 1.5) <= 0.5", True),
        ("abs('b' - 3) >= 0.5", True),
        ("-'b' < 0", True),
        ("'far apart'['1 BDP*'] > 4", True),
        ("'far apart'['1 BDP'] < 7", True),  # the case itself, no pattern
    ],
)
def test_intervals_decide(text, truth):
    assert Inequality.parse(text).evaluate(ROWS).truth is truth


def test_an_outcome_names_the_cases():
    assert Inequality.parse("'a' < 'b'").evaluate(ROWS).failing == ["y"]
    assert Inequality.parse("'c' < 'a'").evaluate(ROWS).undetermined == ["x", "y"]


def test_an_inequality_names_its_rows():
    assert Inequality.parse("'a'['x'] < 'b' and abs('c') < 1").rows == [("a", "x"), ("b", "*"), ("c", "*")]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true') < 1", "open('x') < 1", "'a'", "1", "'a' == 1", "a < 1", "'a' <", "'a'[0] < 1",
        "'a'.upper < 1", "(lambda: 1) < 2", "'a' ** 2 < 1", "all('a')", "any('a' < 1, 'b' < 1)", "True < 2",
    ],
)  # fmt: skip
def test_anything_else_is_rejected(text):
    with pytest.raises(InputError, match="expected"):
        Inequality.parse(text)


def test_rows_of_other_cases_cannot_be_compared():
    with pytest.raises(InputError, match="found rows of different cases"):
        Inequality.parse("'a' < 'far apart'").evaluate(ROWS)


def test_a_row_that_is_missing_is_a_key_error():
    for text in ("'d' < 1", "'a'['z'] < 1"):
        with pytest.raises(KeyError):
            Inequality.parse(text).evaluate(ROWS)


def cell(label, truth, reading="", *, noise=True, scale="") -> Cell:
    return Cell(label, reading, noise, Outcome(truth), scale, single=False)


def quiet(label, truth) -> Cell:
    return cell(label, truth, noise=False)


BOTH = ("packet", "linux")


@pytest.mark.parametrize(
    ("cells", "joint", "more", "name", "why"),
    [
        ([cell("packet", True), cell("linux", True)], None, {}, CONFIRMED, ""),
        ([cell("packet", True), cell("linux", None)], None, {}, UNDETERMINED, "alone (packet), in which it holds"),
        ([quiet("packet", True), quiet("ns2", True)], None, {}, UNDETERMINED, "no run with host noise"),
        ([quiet("packet", True), quiet("ns2", True), cell("packet", True)], None, {}, CONFIRMED, ""),
        ([cell("packet", True), cell("linux", True), cell("packet", False, "b")], "a", {}, CONFIRMED_IF, "read as “a”"),
        ([cell("packet", True, "a"), cell("linux", True, "b")], "a", {}, CONFIRMED, ""),
        ([cell("packet", True, "a"), cell("linux", False, "b")], "a", {}, UNDETERMINED, "it fails if read as “b”"),
        (
            [cell(engine, truth, name) for engine in BOTH for name, truth in (("a", True), ("b", False))],
            None, {}, CONFIRMED_IF, "read as “a”",
        ),
        (
            [cell(engine, noise, noise=noise) for engine in BOTH for noise in (True, False)],
            None, {}, CONFIRMED_IF, "hosts take time for packets",
        ),
        (
            [cell(engine, not scale, scale=scale) for engine in BOTH for scale in ("", "a fifth")],
            None, {}, CONFIRMED_IF, "at the entry's scale",
        ),
        ([cell("packet", False), cell("linux", False)], None, {}, FAILS, ""),
        ([cell("packet", False)], None, {}, UNDETERMINED, "one engine alone (packet), in which it fails"),
        ([cell("packet", False)], None, {"mechanisms": ["pacing"]}, FAILS, ""),
        ([cell("packet", False), cell("linux", False), cell("packet", True, "b")], "a", {}, FAILS, "only if read as"),
        ([cell("packet", True), cell("linux", False)], None, {}, UNDETERMINED, "it holds in packet and fails in linux"),
        ([cell("packet", None), cell("linux", None)], None, {}, UNDETERMINED, "no interval decides"),
        ([cell("theory", True)], None, {}, UNDETERMINED, "no engine that counts"),
        ([cell("theory", True, noise=False)], None, {"is_model": True}, CONFIRMED, ""),
        ([cell("theory", False, noise=False)], None, {"is_model": True}, FAILS, ""),
        ([cell("packet, theory", True)], None, {"is_model": True}, UNDETERMINED, "one engine alone (packet)"),
        ([cell("packet, theory", True), cell("ns2, theory", True)], None, {"is_model": True}, CONFIRMED, ""),
        ([], None, {}, UNDETERMINED, "no engine that counts"),
    ],
)  # fmt: skip
def test_the_rule_of_states(cells, joint, more, name, why):
    found = state_of(cells, joint, **more)
    assert found.name == name
    assert why in found.why


PAPER = """
title = "A small one"
authors = ["Ada Author", "Bert Baker", "Carla Cook"]
year = 1999
published = "nowhere"
entries = ["L2.1"]
"""
CLAIM = """
[[claim]]
id = "less"
quote = "it falls"
section = "1"
entries = ["L2.1"]
holds = "'falls' < 1"
"""


def written(tmp_path: Path, text: str) -> claims.Paper:
    (tmp_path / "author1999.toml").write_text(text)
    return claims.read(tmp_path / "author1999.toml")


def test_a_file_is_read(tmp_path):
    paper = written(tmp_path, PAPER + CLAIM)
    assert (paper.id, paper.short) == ("author1999", "Author and others 1999")
    assert paper.claims[0].full_id == "author1999.less"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAPER.replace("year", "jahr"), 'found the key "jahr"; expected of title'),
        (PAPER.replace("year = 1999\n", ""), "found no year; expected it"),
        (PAPER + CLAIM.replace("quote", "qoute"), 'claim less: found the key "qoute"'),
        (PAPER + CLAIM + 'untestable = "no"\n', "claim less: expected one of holds, inconsistent and untestable"),
        (PAPER + CLAIM.replace('entries = ["L2.1"]\n', ""), "claim less: found no entries"),
        (PAPER + '[[testbed]]\nname = "t"\n', "testbed t: found no entries; expected it"),
        ("title", "expected TOML"),
    ],
)
def test_a_mistake_in_a_file_is_one_line(tmp_path, text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        written(tmp_path, text)


def test_reasons_are_states(tmp_path):
    for key, name in (("inconsistent", INCONSISTENT), ("untestable", UNTESTABLE)):
        text = CLAIM.replace("holds = \"'falls' < 1\"", f'{key} = "for a reason"')
        (claim,) = written(tmp_path, PAPER + text).claims
        assert (claim.state.name, claim.state.why) == (name, "for a reason")


COLUMNS = (
    "engine,claim,at,reproduced,ci95_low,ci95_high,n,verdict,why,counts,scale,reading,"
    "perturbed,perturbed_low,perturbed_high\n"
)
ABLATION = """
[[mechanism]]
name = "a longer queue"
says = "Packets are lost since the queue is short."
moves = ["falls"]
"""


def test_an_ablation_that_turns_some_of_the_failing_cases_names_them(tmp_path):
    """Name `a`, which holds with the change; `b` fails with it, and `c` is undetermined."""
    folder = tmp_path / "L2.1"
    folder.mkdir()
    (folder / "README.md").write_text("# A small one\n")
    (folder / "mechanisms.toml").write_text(ABLATION)
    (folder / "check.py").write_text('ENGINES = ("packet", "linux")\n')
    (folder / "scenario.toml").write_text(SCENARIO)
    tables = {
        "reproduced.csv": [(engine, case, 2, 3, "") for engine in ("packet", "linux") for case in "abc"],
        "switched.csv": [("packet", case, *ends, "a longer queue") for case, ends in SWITCHED.items()],
    }
    for name, rows in tables.items():
        lines = [
            f"{engine},falls,{case},{(low + high) / 2},{low},{high},3,agrees,,true,full,{read},,,"
            for engine, case, low, high, read in rows
        ]
        (folder / name).write_text(COLUMNS + "\n".join(lines) + "\n")
    (claim,) = written(tmp_path, PAPER + CLAIM).claims
    assert claim.state.name == FAILS
    assert not claim.state.mechanisms
    assert claim.partial_mechanisms == ["a longer queue (a): Packets are lost since the queue is short."]
    assert "- Turned in part by *a longer queue (a): Packets" in page.paper_page(claim.paper, {})


#: 95 % intervals with the ablation.
SWITCHED = {"a": (0.1, 0.2), "b": (2, 3), "c": (0.5, 3)}

SCENARIO = f"""
name = "small"
duration = "4s"
{dumbbell("5Mbit", "20ms")}
[[flows]]
congestion = "cubic"
"""


def test_every_entry_belongs_to_one_paper():
    assert sorted(name for paper in PAPERS for name in paper.entries) == sorted(entry.id for entry in entries())


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.full_id)
def test_a_claim_refers_to_rows_of_its_entries(claim):
    """Each row is one of the entry's recorded results, and each pattern has a case there."""
    found = {}
    for name in claim.entries:
        assert name in claim.paper.entries
        for row in claims.recorded(find(name, claim.paper.all_entries)).rows:
            key = row.claim if len(claim.entries) == 1 else f"{name}: {row.claim}"
            found.setdefault(key, {})[row.at] = Interval(1, 1)
    if claim.holds:
        claim.inequality.evaluate(found)
        assert claim.cells


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.full_id)
def test_a_difference_from_the_audit_is_explained(claim):
    differs = bool(claim.audit) and claim.audit != claim.state.name
    assert bool(claim.difference) == differs
    assert claim.audit in ("", *STATES)
    assert claim.about in ("", MODEL)


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.id)
def test_testbeds_name_readings_of_their_entries(paper):
    for testbed in paper.testbeds:
        assert set(testbed.entries) <= set(paper.entries)
        for entry in (find(name, paper.all_entries) for name in testbed.entries):
            for reading in testbed.readings:
                assert bool(reading.of(entry)) == bool(entry.readings.every)


def test_the_text_chooses_before_the_likelihood():
    (windows,) = (each for each in claims.find_paper("braud2016").testbeds if "windows" in each.name)
    assert not claims.find_paper("braud2016").joint(windows).residuals
    kumar = claims.find_paper("Kumar2010")
    chosen = kumar.joint(kumar.testbeds[0])
    assert chosen.residuals[chosen.reading.name] == min(chosen.residuals.values())


def call(*arguments: str):
    return CliRunner().invoke(application, arguments)


def test_a_paper_is_printed_and_nothing_run():
    done = call("reproduce", "kumar2010")
    assert done.exit_code == 0, done.output
    assert "hstcp-above-90" in done.stdout
    found = json.loads(call("reproduce", "KUMAR2010", "--json").stdout)
    assert found["claims"][0]["id"] == "kumar2010.synchronisation-model"


def test_the_claims_of_an_entry_are_printed():
    done = call("claim", "k.ver")
    assert "kumar2010.synchronisation-model: " in done.stdout
    (found,) = map(json.loads, call("claim", "kumar2010.hstcp-above-90", "--json").stdout.splitlines())
    assert {cell["engine"] for cell in found["cells"]} == {"packet", "fluid"}


def test_an_unknown_claim_is_rejected():
    done = call("claim", "kumar2010.hstcp-above")
    assert done.exit_code == 2
    assert "such as kumar2010.hstcp-above-90" in done.output


def test_the_vector_has_a_mark_for_each_cell():
    cells = [cell("packet", True), cell("linux", None), cell("packet", False, "b", noise=False)]
    text = page.vector(cells)
    assert "| each | yes | the entry's | ✓ | ? |" in text
    assert "| b | no | the entry's | ✗ |  |" in text


def test_a_claim_turns_where_its_entry_does(monkeypatch):
    claim = claims.find_claims("braud2016.ack-compression-outlier")[0]
    seen = {}

    def outcome(_claim, varied, value, report):
        seen[value] = Outcome(value < 0.3)
        report(value, seen[value])
        return seen[value]

    monkeypatch.setattr(ablation_runner, "_outcome", outcome)
    varied = ablation_runner.Varied.parse("rtt_spread=0..2ms")
    low, high = ablation_runner.turning_point(claim, varied)
    assert low < 0.3 < high
    assert high - low == pytest.approx(2 / 64)
    assert ablation_runner.turning_point(claim, ablation_runner.Varied("x", 1.0, 2.0, "")) is None


def test_a_varied_key_is_a_change_of_the_scenario():
    plan = next(iter(cases.plans(find("R4.4").folder, quick=True).values()))
    change = ablation_runner.Varied.parse("flows[1].rtt=42..44ms").changes(43, plan)
    assert change == {"flows": [{}, {"rtt": "43ms"}]}
    spread = ablation_runner.Varied.parse("rtt_spread=0..2ms").changes(1.5, plan)
    assert [each["rtt"] for each in spread["flows"]] == ["0.042000000s", "0.043500000s"]


@pytest.mark.parametrize("text", ["rtt_spread", "rtt_spread=1ms", "a b=1..2", "x=1ms..2s", "flows[=1..2"])
def test_a_mistake_in_what_varies_is_one_line(text):
    with pytest.raises(InputError, match=re.escape("--vary: found")):
        ablation_runner.Varied.parse(text)
