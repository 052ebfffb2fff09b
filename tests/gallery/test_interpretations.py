"""Readings of a paper: what each changes, which of them count, and how that is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_networks import dumbbell

from ackclock.errors import InputError
from ackclock.gallery import Entry, Row, cases, page, runner
from ackclock.gallery.cases import Interpretation
from ackclock.gallery.result import FULL, Judged, Result

FILES = {
    "README.md": "# A small one\n\nWhy.\n",
    "scenario.toml": f"""
name = "small"
duration = "4s"
repeats = 2
{dumbbell("5Mbit", "20ms")}
[[flows]]
congestion = "cubic"
""",
    "cases.toml": '[congestion]\ncubic.flows = [{ congestion = "cubic" }]\nreno.flows = [{ congestion = "reno" }]\n',
    "quick.toml": 'duration = "1s"\nrepeats = 1\n',
    "published.csv": """claim,what,published,value,unit,where,how
rate,goodput,5 Mb/s,5e6,bit/s,table 1,read
busy,utilisation,full,1,share,table 2,read
""",
    "check.py": """
from ackclock.gallery import Row
ENGINES = ("fluid", "packet")
MEASURES = {"rate": "goodput_bps"}
def check(measured, published):
    return [Row("rate", measured["reno"]["rate"], (4e6, 6e6), (0, 1e9))]
def compare(measured, published):
    rates = [measured[engine]["reno"]["rate"][0] for engine in ("fluid", "packet")]
    return [Row("rate", (sum(rates),), (0, 1e9), (0, 1e9), "sum")]
""",
    "readings.toml": """
engines = ["packet"]
[[reading]]
name = "one way"
says = "“20 ms” is the RTT."
[[reading]]
name = "both ways"
says = "“20 ms” is a way: the RTT is twice that."
changes.network.rtt = "40ms"
at.cubic.flows = [{ congestion = { beta = 0.8, kind = "cubic" } }]
""",
}


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    folder = tmp_path / "X1.2"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return Entry(folder)


def judged(reading: str, mean: float | None, claim: str = "rate", **marks: Any) -> Judged:
    """A row that agrees at 1, differs at 2, contradicts from 4 on."""
    return Judged.of(Row(claim, (mean,), (0, 1), (0, 3), **marks), "packet", "", FULL, reading)


def test_a_reading_changes_all_cases_and_those_that_it_names(entry):
    first, second = entry.readings.every
    as_it_stands, other = (cases.plans(entry.folder, reading=reading) for reading in (first, second))
    assert as_it_stands == cases.plans(entry.folder)
    assert {plan.flows[0].base_rtt_s for plan in other.values()} == {0.04}
    betas = [found["cubic"].groups[0].congestion.parameters["beta"] for found in (as_it_stands, other)]
    assert betas == [0.7, 0.8]
    assert other["reno"].groups[0].congestion.parameters == as_it_stands["reno"].groups[0].congestion.parameters


def test_the_scale_applies_after_the_interpretation(entry):
    (entry.folder / "readings.toml").write_text(FILES["readings.toml"] + 'changes.duration = "9s"\n')
    reading = Entry(entry.folder).readings.every[1]
    (entry.folder / "packet.toml").write_text("repeats = 3\n")
    assert {plan.duration_s for plan in cases.plans(entry.folder, reading=reading).values()} == {9.0}
    quick = cases.plans(entry.folder, engine="packet", quick=True, reading=reading)
    assert {(plan.duration_s, len(plan.seeds)) for plan in quick.values()} == {(1.0, 1)}


def test_the_file_of_an_engine_may_change_some_cases_or_one(entry):
    queues = """[queue]
short.network.queue.limit = "10p"
long.network.queue.limit = "20p"
"""
    (entry.folder / "cases.toml").write_text(FILES["cases.toml"] + queues)
    (entry.folder / "packet.toml").write_text(
        'repeats = 3\n[at]\nreno.duration = "5s"\n"reno long".network.queue.limit = "30p"\n'
    )
    plans = cases.plans(entry.folder, engine="packet")
    found = {
        name: (len(plan.seeds), plan.duration_s, plan.links[0].queue.parameters["limit_packets"])
        for name, plan in plans.items()
    }
    assert found == {
        "cubic short": (3, 4.0, 10),
        "cubic long": (3, 4.0, 20),
        "reno short": (3, 5.0, 10),
        "reno long": (3, 5.0, 30),
    }
    assert {plan.duration_s for plan in cases.plans(entry.folder, engine="packet", quick=True).values()} == {1.0}


def test_the_file_of_an_engine_names_cases_that_exist(entry):
    (entry.folder / "packet.toml").write_text("at.bbr.repeats = 1\n")
    with pytest.raises(InputError, match=r'packet\.toml: at: found "bbr"; expected a value of cases\.toml or a case'):
        cases.plans(entry.folder, engine="packet")
    (entry.folder / "packet.toml").write_text("at = 1\n")
    with pytest.raises(InputError, match=r"packet\.toml: at: found 1; expected a table"):
        cases.plans(entry.folder, engine="packet")


def test_a_reading_may_be_for_some_engines(entry):
    text = (
        FILES["readings.toml"]
        .replace('engines = ["packet"]\n', "")
        .replace('name = "both', 'engines = ["fluid"]\nname = "both')
    )
    (entry.folder / "readings.toml").write_text(text)
    listed = [(case.engine, case.content["network"]["rtt"]) for case in runner.listed(entry) if case.name == "reno"]
    assert listed == [("fluid", "20ms"), ("fluid", "40ms"), ("packet", "20ms")]


def test_without_the_file_no_interpretations_exist(entry):
    (entry.folder / "readings.toml").unlink()
    assert not entry.readings.every
    assert not entry.readings.concern("packet")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[reading]]\n", "reading 1: name: found nothing; expected words"),
        ('[[reading]]\nname = "a"\n', "reading 1: says: found nothing; expected words"),
        ('[[reading]]\nname = "a/b"\nsays = "x"\n', 'reading 1: name: found "a/b"; expected words'),
        ('[[reading]]\nname = "a"\nsays = "x"\nchange = {}\n', 'reading 1: found the key "change"; expected of name'),
        ('[[reading]]\nname = "a"\nsays = 5\n', "reading 1: says: found 5; expected a string"),
        ("reading = [1]\n", "reading 1: found 1; expected a table"),
        ("", "reading: found .*; expected one table or more, of different names"),
        (2 * '[[reading]]\nname = "a"\nsays = "x"\n', "expected one table or more, of different names"),
        ("[[reading\n", r"readings.toml:1: found .*; expected TOML"),
    ],
)
def test_a_mistake_is_one_line(entry, text, message):
    (entry.folder / "readings.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        _ = entry.readings


def test_a_value_without_a_case_is_rejected(entry):
    (entry.folder / "readings.toml").write_text('[[reading]]\nname = "a"\nsays = "x"\nat.bbr.repeats = 1\n')
    with pytest.raises(InputError, match=r'at: found "bbr"; expected a value of cases\.toml or a case'):
        cases.plans(entry.folder, reading=entry.readings.every[0])


def test_a_missing_interpretation_is_rejected(entry):
    assert [reading.name for reading in entry.read_as(["both ways"]).chosen] == ["both ways"]
    with pytest.raises(
        InputError, match='--interpretation: found "neither"; expected of X1.2 one of one way, both ways'
    ):
        entry.read_as(["neither"])


def test_a_table_keeps_readings_and_perturbed_values(tmp_path):
    made = Result("X", [judged("a", 1, perturbed=(1.0, 3.0)), judged("", None)])
    made.write(tmp_path / "new.csv")
    assert Result.read(tmp_path / "new.csv", "X") == made
    assert made.rows[0].perturbed == 2
    assert made.rows[0].perturbed_low < 1
    assert made.rows[0].perturbed_high > 3
    (tmp_path / "old.csv").write_text("engine,claim\n")
    with pytest.raises(InputError, match="expected engine, claim, at, reproduced"):
        Result.read(tmp_path / "old.csv", "X")


def test_rows_of_a_repeated_interpretation_are_replaced():
    found = Result("X", [judged("a", 1), judged("b", 1)]).merged(Result("X", [judged("b", 2), judged("c", 2)]))
    assert [(row.reading, row.reproduced) for row in found.rows] == [("a", 1), ("b", 2), ("c", 2)]


def test_the_page_has_a_table_of_readings(entry):
    rows = [judged("both ways", 1), judged("both ways", 4, "busy", aside=True)]
    text = page.entry_page(entry, Result("X1.2", rows), "X1.2.png")
    assert "| one way | “20 ms” is the RTT. |" in text
    assert "| both ways | goodput | 5 Mb/s | packet |" in text
    assert "| both ways | utilisation | full |" in text


def test_an_entry_that_was_not_run_has_a_page(entry):
    text = page.entry_page(entry, Result.last(entry.folder / "reproduced.csv", entry.id))
    assert page.UNRUN in text
    assert "![" not in text


def test_engines_are_compared_in_their_order(entry, tmp_path):
    """The first may also be the engine that interpretations change."""
    (entry.folder / "readings.toml").write_text(FILES["readings.toml"].replace('["packet"]', '["fluid"]'))
    found = runner.run(Entry(entry.folder).read_as(["one way"]), tmp_path / "out", quick=True)
    assert [row.engine for row in found.rows] == ["packet", "fluid", "fluid, packet"]


def test_engines_unaffected_by_interpretations_run_a_single_time(entry, tmp_path):
    result = runner.run(entry, tmp_path / "out", quick=True)
    assert [(row.engine, row.reading) for row in result.rows] == [
        ("fluid", ""),
        ("packet", "one way"),
        ("fluid, packet", "one way"),
        ("packet", "both ways"),
        ("fluid, packet", "both ways"),
    ]
    assert len(runner.listed(entry)) == 2 + 2 * 2
    assert (tmp_path / "out" / "both-ways" / "packet" / "reno" / "manifest.json").is_file()
    assert (tmp_path / "out" / "fluid" / "reno" / "manifest.json").is_file()
    one, both = (row.reproduced for row in result.rows if row.engine == "packet")
    assert one > both > 0


@pytest.mark.parametrize(
    ("read", "said"),
    [
        ({"packet": "one way", "linux": "one way", "theory": ""}, "read as: one way"),
        ({"packet": "both ways", "linux": "one way"}, "read as: both ways (packet); one way (linux)"),
        ({"packet": ""}, ""),
    ],
)
def test_a_figure_names_the_interpretation_of_its_runs(read, said):
    shown = {engine: (runner.Pass(Interpretation(name, ""), {}), {"a case": None}) for engine, name in read.items()}
    assert runner._read_as({**shown, "ns2": (runner.Pass(Interpretation("not run", ""), {}), {})}) == said
