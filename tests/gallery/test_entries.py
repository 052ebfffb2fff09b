"""Finding entries, merging their cases, judging: the parts that need no run."""

from __future__ import annotations

import json
import math
import shutil
from math import inf
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_networks import dumbbell

from ackclock.cli.program import application
from ackclock.errors import InputError, ScenarioError, Unsupported, UnsupportedError
from ackclock.gallery import (
    AGREES,
    CONTRADICTS,
    DIFFERS,
    NOT_MEASURED,
    Entry,
    Row,
    cases,
    entries,
    find,
    in_order,
    near,
    ratio,
    runner,
)
from ackclock.gallery.entry import REPRODUCTIONS
from ackclock.gallery.result import FULL, Judged, Result
from ackclock.gallery.rows import of_run

SCENARIO = f"""
name = "small"
duration = "4s"
repeats = 2
{dumbbell("5Mbit", "20ms")}
[[flows]]
count = 2
congestion = "cubic"
start = {{ jitter = "100ms" }}
"""
CASES = """
[congestion]
cubic.flows = [{ congestion = "cubic" }]
reno.flows = [{ congestion = "reno" }]
[queue]
codel.network.queue = { discipline = "codel", limit = "100p" }
small.network.queue.limit = "5p"
"""
CHECK = """
from ackclock.gallery import Row, near
ENGINES = ("packet",)
MEASURES = {"rate": "goodput_bps"}
def check(measured, published):
    return [Row("rate", measured["cubic small"]["rate"], near(published["rate"].value, 0.1), (0, 1e9))]
"""
PUBLISHED = """claim,what,published,value,unit,where,how
rate,goodput,5 Mb/s,5e6,bit/s,table 1,read
"""


@pytest.fixture
def entry(tmp_path) -> Entry:
    folder = tmp_path / "X1.2-1.3"
    folder.mkdir()
    files = {
        "README.md": "# A small one\n\nWhy.\n",
        "scenario.toml": SCENARIO,
        "cases.toml": CASES,
        "quick.toml": 'duration = "2s"\nrepeats = 1\n',
        "published.csv": PUBLISHED,
        "check.py": CHECK,
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return Entry(folder)


def row(mean, agrees=(1, 2), differs=(0, 3)):
    return Row("x", (mean,), agrees, differs)


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [
        (1, AGREES),
        (2, AGREES),
        (0.9, DIFFERS),
        (3, DIFFERS),
        (3.1, CONTRADICTS),
        (-1, CONTRADICTS),
        (None, NOT_MEASURED),
    ],
)
def test_the_bands_decide(mean, verdict):
    assert row(mean).verdict == verdict


def test_the_reason_is_the_band():
    assert row(1.5).why("share") == "100 % to 200 %"
    assert row(0.5, (0.6, inf), (0.15, inf)).why("share") == "not at least 60 %, but at least 15 %"
    assert row(4e6, (0, 1e6), (-inf, 2.5e6)).why("bit/s") == "not at most 2.5 Mb/s"
    assert row(None).why("") == "without a value in any run"


def test_near_is_a_share_of_the_published_value():
    assert near(10, 0.1) == (9, 11)
    assert near(-10, 0.1) == (-11, -9)


def test_a_ratio_is_taken_seed_by_seed():
    assert ratio((2.0, None, 3.0, 1.0), (4.0, 1.0, 0.0, None)) == (0.5, None, None, None)


def test_in_order_counts_pairs_and_misses_what_was_not_measured():
    columns = [(1.0, 3.0, None), (2.0, 1.0, 1.0), (3.0, 2.0, 2.0)]
    assert in_order(columns) == (1.0, 1 / 3, None)


def test_an_unknown_metric_is_rejected():
    with pytest.raises(InputError, match="found 'speed'; expected a function of a run"):
        of_run(None, {"x": "speed"})


def test_what_is_not_a_number_is_missing():
    assert of_run(None, {"share": lambda _: math.nan, "none": lambda _: None}) == {"share": None, "none": None}


def test_cases_are_the_product_of_the_dimensions(entry):
    plans = cases.plans(entry.folder)
    assert list(plans) == ["cubic codel", "cubic small", "reno codel", "reno small"]
    plan = plans["reno small"]
    assert {group.name for group in plan.groups} == {"reno"}
    assert len(plan.flows) == 2
    assert plan.links[0].queue.discipline == "pfifo"
    assert plan.links[0].queue.parameters["limit_packets"] == 5
    assert plans["cubic codel"].links[0].queue.discipline == "codel"


def test_quick_is_merged_last(entry):
    assert {(plan.duration_s, plan.seeds) for plan in cases.plans(entry.folder).values()} == {(4.0, (1, 2))}
    assert {(plan.duration_s, plan.seeds) for plan in cases.plans(entry.folder, quick=True).values()} == {(2.0, (1,))}


def test_an_engine_may_be_given_something_else(entry):
    (entry.folder / "packet.toml").write_text('duration = "3s"\nrepeats = 5\n[network]\nqueue.limit = "7p"\n')
    seeds = {plan.seeds for plan in cases.plans(entry.folder, engine="packet").values()}
    assert seeds == {(1, 2, 3, 4, 5)}
    plans = cases.plans(entry.folder, engine="packet")
    limits = {plan.links[0].queue.parameters["limit_packets"] for plan in plans.values()}
    assert limits == {7}
    assert {plan.duration_s for plan in cases.plans(entry.folder, engine="packet", quick=True).values()} == {2.0}
    assert {plan.duration_s for plan in cases.plans(entry.folder, engine="fluid").values()} == {4.0}


def test_without_cases_one_is_implied(entry):
    (entry.folder / "cases.toml").unlink()
    assert list(cases.plans(entry.folder)) == ["all"]


def test_a_mistake_in_a_case_is_one_line(entry):
    (entry.folder / "cases.toml").write_text('[queue]\nlarge.network.queue.limit = "5"\n')
    with pytest.raises(ScenarioError, match=r"scenario.toml \(large\): network.queue.limit: found \"5\"; expected"):
        cases.plans(entry.folder)
    (entry.folder / "cases.toml").write_text("[queue]\nlarge = 5\n")
    with pytest.raises(InputError, match=r"cases.toml: queue: found something else; expected tables"):
        cases.plans(entry.folder)


@pytest.mark.parametrize("name", ["README.md", "scenario.toml", "quick.toml", "published.csv", "check.py"])
def test_a_missing_file_is_one_line(entry, name):
    (entry.folder / name).unlink()
    with pytest.raises(InputError, match=f"X1.2-1.3: found no {name}; expected README.md"):
        entries(entry.folder.parent)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("published.csv", "claim,value\n", "found the columns"),
        ("published.csv", PUBLISHED.replace("5e6", "much"), 'rate: found "much"; expected a number or nothing'),
        ("check.py", "ENGINES = ()\n", "check.py: found no MEASURES; expected it"),
        ("check.py", CHECK.replace('Row("rate"', 'Row("speed"'), 'found "speed"; expected a published claim'),
        ("README.md", "A small one\n", "found no heading"),
    ],
)
def test_a_wrong_file_is_one_line(entry, file, text, message):
    (entry.folder / file).write_text(text)
    with pytest.raises(InputError, match=message):
        _ = entry.title, entry.published, entry.measures, entry.check({"cubic small": {"rate": (5e6,)}})


@pytest.mark.parametrize("name", ["X1.2-1.3", "x1.2–1.3", "X1.2", " x1.2 ", "X1.2−1.3"])
def test_ids_match_in_any_case_and_with_any_dash(entry, name):
    assert find(name, [entry]) == entry


def test_a_missing_id_names_the_entries_that_it_may_mean(entry):
    other = Entry(shutil.copytree(entry.folder, entry.folder.with_name("X1.21")))
    for name, expected in {
        "X1": r"X1\.2-1\.3 \(.*\); X1\.21 \(.*\)",
        "X1.22": '"X1.21"',
        "Q": 'one of "X1.2-1.3", "X1.21"',
        other.title.split()[0].upper(): r"X1\.2-1\.3 \(",
    }.items():
        with pytest.raises(InputError, match=f"^ID: found .*; expected {expected}"):
            find(name, [entry, other])
    assert find("X1.2", [entry, other]) == entry


def test_ids_are_in_the_order_of_their_numbers(entry):
    for name in ("X1.10", "X1.4"):
        shutil.copytree(entry.folder, entry.folder.with_name(name))
    assert [each.id for each in entries(entry.folder.parent)] == ["X1.2-1.3", "X1.4", "X1.10"]


def test_a_table_is_read_as_it_was_written(tmp_path):
    made = Result("X", [Judged.of(row(value), "packet", "share", FULL) for value in (1 / 3, None)])
    made.write(tmp_path / "reproduced.csv")
    assert Result.read(tmp_path / "reproduced.csv", "X") == made


def test_the_package_carries_the_entries():
    assert REPRODUCTIONS.resolve() == Path(__file__).parents[2] / "reproductions"


def call(*arguments):
    return CliRunner().invoke(application, ["reproduce", *map(str, arguments)])


def test_what_an_entry_runs_is_listed_without_planning_it(entry, monkeypatch):
    monkeypatch.setattr(cases, "plan", lambda *_: pytest.fail("planned"))
    listed = runner.listed(entry)
    assert [(case.engine, case.name, case.seeds) for case in listed] == [
        ("packet", name, 2) for name in ("cubic codel", "cubic small", "reno codel", "reno small")
    ]
    assert [case.seeds for case in runner.listed(entry, quick=True)] == [1] * 4


@pytest.fixture
def only(entry, monkeypatch):
    monkeypatch.setattr("ackclock.gallery.entries", lambda: [entry])
    return entry


def test_without_an_id_papers_and_entries_are_listed(only):
    done = call()
    assert done.exit_code == 0
    assert "X1.2-1.3" in done.stdout
    assert "A small one" in done.stdout
    assert "belhareth2014" in done.stdout


@pytest.mark.parametrize("which", ["x1.2", "--all"])
def test_a_run_prints_its_verdict_and_writes_a_folder(only, tmp_path, which):
    done = call(which, "--quick", "--out", tmp_path / "out", "--jobs", 1)
    assert done.exit_code == 0, done.output
    assert "published: 5 Mb/s" in done.stdout
    assert "4.5 Mb/s to 5.5 Mb/s" in done.stdout
    assert "this is a preview" in done.stdout
    folder = tmp_path / "out" / only.id
    assert (folder / "packet" / "cubic-small" / "manifest.json").is_file()
    assert {path.name for path in folder.iterdir()} == {
        "packet",
        "reproduced.csv",
        "figure.png",
        "page.md",
        "manifest.json",
    }
    assert "A preview at a reduced scale" in (folder / "page.md").read_text()
    assert call(which, "--quick", "--force", "--out", tmp_path / "out").exit_code == 0  # replaces its own


def test_a_preview_shows_the_recorded_values(only, tmp_path):
    row = Row("rate", (4.7e6, 4.8e6), (0, 1e6), (0, 5e6))
    Result(only.id, [Judged.of(row, "packet", "bit/s", FULL)]).write(only.folder / "reproduced.csv")
    done = call("X1.2", "--quick", "--out", tmp_path / "out", "--jobs", 1)
    (recorded,) = [line for line in done.stdout.splitlines() if "recorded at full scale" in line]
    assert "4.75 Mb/s" in recorded
    assert "differs" in recorded
    found = json.loads(call("X1.2", "--quick", "--json", "--out", tmp_path / "out").stdout)
    assert found["recorded"]["packet"][0]["reproduced"] == 4.75e6
    full = call("X1.2", "--out", tmp_path / "out")
    assert "recorded at full scale" not in full.stdout


def test_json_is_a_line_for_each_entry_and_a_contradiction_exits_0(only, tmp_path):
    (only.folder / "published.csv").write_text(PUBLISHED.replace("5e6", "1e6"))
    (only.folder / "check.py").write_text(CHECK.replace("(0, 1e9)", "(0, 2e6)"))
    done = call("X1.2", "--quick", "--json", "--out", tmp_path / "out")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert (found["id"], found["scale"]) == ("X1.2-1.3", "quick")
    assert found["engines"]["packet"][0]["claim"] == "rate"
    assert found["engines"]["packet"][0]["verdict"] == "contradicts"
    assert 4e6 < found["engines"]["packet"][0]["reproduced"] < 5e6


def test_an_engine_missing_on_the_machine_is_skipped_and_named(entry, tmp_path, monkeypatch):
    text = CHECK.replace('("packet",)', '("fluid", "packet")')
    (entry.folder / "check.py").write_text(text)
    (entry.folder / "figure.py").write_text(
        "from matplotlib.figure import Figure\n"
        "def draw(fluid, packet):\n    assert not fluid and len(packet) == 4\n    return Figure()\n"
    )
    monkeypatch.setattr("ackclock.engines.unavailable", lambda name: "no glass" if name == "fluid" else None)
    with pytest.warns(UserWarning, match=r'X1\.2-1\.3 is run without the engine "fluid": no glass'):
        found = runner.run(entry, tmp_path / "out", quick=True)
    assert [(row.engine, row.verdict, row.counts, row.why) for row in found.rows] == [
        ("fluid", NOT_MEASURED, False, "no glass"),
        ("packet", AGREES, True, "4.5 Mb/s to 5.5 Mb/s"),
    ]
    assert not (tmp_path / "out" / "fluid").exists()


def test_an_unsupported_case_is_not_measured_and_has_a_reason(entry, tmp_path, monkeypatch):
    run = runner.runner.run

    def unable(plan, engine, **around):
        if engine == "fluid" and len(plan.seeds) == 1:
            what = "wings" if plan.groups[0].name == "reno" else "queues"
            raise UnsupportedError([Unsupported(what, engine)])
        return run(plan, "packet", **around)

    monkeypatch.setattr(runner.runner, "run", unable)
    (entry.folder / "check.py").write_text(CHECK.replace('("packet",)', '("packet", "fluid")'))
    found = runner.run(Entry(entry.folder), tmp_path / "out", quick=True)
    assert [(row.engine, row.verdict, row.counts) for row in found.rows] == [
        ("packet", AGREES, True),
        ("fluid", NOT_MEASURED, False),
    ]
    assert found.rows[1].why == 'engine "fluid" has no queues, no wings'
    assert not (tmp_path / "out" / "fluid").exists()


def test_an_entry_may_be_run_by_some_of_its_engines(entry, tmp_path):
    text = CHECK.replace('("packet",)', '("fluid", "packet")')
    (entry.folder / "check.py").write_text(text)
    (entry.folder / "figure.py").write_text(
        "from matplotlib.figure import Figure\n"
        "def draw(fluid, packet):\n    assert not fluid and len(packet) == 4\n    return Figure()\n"
    )
    found = runner.run(Entry(entry.folder).with_engines(["packet"]), tmp_path / "out", quick=True)
    assert found.engines == ["packet"]
    with pytest.raises(InputError, match=r'--engine: found "ns2"; expected of X1\.2-1\.3 one of fluid, packet'):
        Entry(entry.folder).with_engines(["ns2"])


def test_rows_of_repeated_engines_are_replaced():
    def result(**means):
        return Result("X", [Judged.of(row(mean), name, "", FULL) for name, mean in means.items()])

    both = result(packet=1, linux=2).merged(result(linux=3, ns2=4))
    assert [(each.engine, each.reproduced) for each in both.rows] == [("packet", 1), ("linux", 3), ("ns2", 4)]


def test_comparison_rows_may_cover_some_engines(entry, tmp_path):
    text = CHECK.replace('("packet",)', '("packet", "fluid")')
    text += (
        "def compare(measured, published):\n"
        '    found = measured["fluid"]["cubic small"]["rate"]\n'
        '    return {"fluid": [], "fluid, packet": [Row("rate", found, (0, 1e9), (0, 1e9), "beside")]}\n'
    )
    (entry.folder / "check.py").write_text(text)
    (entry.folder / "fluid.toml").write_text('[network]\nqueue = { discipline = "pfifo", limit = "20p" }\n')
    found = runner.run(Entry(entry.folder), tmp_path / "out", quick=True)
    assert [row.at for row in found.rows if row.engine == "fluid, packet"] == ["beside"]


def test_an_engine_may_run_some_cases_only(entry, tmp_path):
    rows = ', Row("rate", measured["reno small"]["rate"], (0, 1e9), (0, 1e9), "reno"), *measured["other"].values()]'
    only = 'def runs(engine, case):\n    return case == "cubic small"\n'
    (entry.folder / "check.py").write_text(CHECK.replace("(0, 1e9))]", "(0, 1e9))" + rows) + only)
    with pytest.raises(KeyError, match="other"):
        runner.run(entry, tmp_path / "out", quick=True)
    text = (entry.folder / "check.py").read_text().replace(', *measured["other"].values()', "")
    (entry.folder / "check.py").write_text(text)
    found = runner.run(Entry(entry.folder), tmp_path / "out", quick=True)
    assert [(row.claim, row.at, row.verdict) for row in found.rows] == [("rate", "", "agrees")]


def test_a_capture_is_measured_with_its_run(entry, tmp_path):
    """Read as one of a stranger: without the plan."""
    scenario = entry.folder / "scenario.toml"
    scenario.write_text(f"{scenario.read_text()}[record]\npcap = true\n")
    rule = CHECK.replace('measured["cubic small"]["rate"], near', 'measured["cubic small"]["planned"], near') + (
        "def planned(view):\n    return None if view.plan.duration_s is None else 1.0\n"
        'CAPTURED = {"seen": "goodput_bps", "planned": planned}\n'
    )
    both = 'ratio(measured["cubic small"]["seen"], measured["cubic small"]["rate"]), (0.95, 1.05), (0, 1e9), "both")]'
    rule = rule.replace("(0, 1e9))]", '(0, 1e9)), Row("rate", ' + both).replace("near\n", "near, ratio\n", 1)
    (entry.folder / "check.py").write_text(rule)
    found = runner.run(entry, tmp_path / "out", quick=True)
    assert [(row.at, row.verdict) for row in found.rows] == [("", "not measured"), ("both", "agrees")]
    assert not list((tmp_path / "out").rglob("*.pcap"))


def test_a_quick_run_may_leave_cases_out(entry):
    only = 'def runs(engine, case):\n    return case.startswith("cubic")\n'
    (entry.folder / "check.py").write_text(
        CHECK + only + 'def is_quick(engine, case):\n    return case.endswith("small")\n'
    )
    names = ["cubic codel", "cubic small", "reno codel", "reno small"]
    assert [name for name in names if entry.runs("packet", name)] == ["cubic codel", "cubic small"]
    assert [name for name in names if entry.runs("packet", name, quick=True)] == ["cubic small"]


def test_another_folder_is_not_changed(only, tmp_path):
    (tmp_path / "out" / only.id).mkdir(parents=True)
    (tmp_path / "out" / only.id / "thesis.tex").write_text("")
    done = call("X1.2", "--quick", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "found something that is not an ackclock result" in done.stderr


def test_an_engine_that_is_not_the_entrys_exits_2(only, tmp_path):
    done = call("X1.2", "--quick", "--engine", "ns2", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert 'found "ns2"; expected of X1.2-1.3 one of packet' in done.stderr


def test_bad_options_exit_2(only):
    assert call("X7").exit_code == 2
    assert call("X1.2", "--jobs", 0).exit_code == 2


CAPTURING = """
from ackclock import metrics, replay
from ackclock.gallery import Row
from ackclock.reproductions import pcap
ENGINES = ("packet", "fluid")
MEASURES = {"own": "goodput_bps"}
CAPTURED = {
    "told": "goodput_bps",
    "left": lambda view: float(view.data.manifest["imposed"]["left"]),
    "segments": lambda view: float(view.data.scan("segments").collect().height),
}
READING = {"segments": True}
def imposed(case, capture):
    records = pcap.read(capture)[:-100]
    pcap.write(capture, records)
    return {"left": len(records)}
def fed(engine, case, plan, result):
    return replay(plan, result("captured", case)) if engine == "fluid" else plan
def check(measured, published):
    names = ("own", "told", "left", "segments")
    return [Row("rate", measured["all"][name], (1, 1e9), (1, 1e9), name) for name in names]
"""


def test_modified_captures_are_measured(entry, tmp_path):
    """The engine without captures has nothing of theirs, and is fed with what they told; the figure is given them."""
    (entry.folder / "cases.toml").unlink()
    (entry.folder / "check.py").write_text(CAPTURING)
    (entry.folder / "scenario.toml").write_text(SCENARIO + "[record]\npcap = true\n")
    (entry.folder / "fluid.toml").write_text("[record]\npcap = false\n")
    (entry.folder / "figure.py").write_text(
        "from matplotlib.figure import Figure\n"
        "def draw(packet, fluid, captured):\n"
        "    assert packet.keys() == fluid.keys() == captured.keys() == {'all'}\n"
        "    assert len(captured['all'].runs) == 2 and 'capture' in captured['all'].manifest\n"
        "    return Figure()\n"
    )
    result = runner.run(Entry(entry.folder), tmp_path / "made")
    rows = {(row.engine, row.at): row for row in result.rows}
    assert rows["packet", "told"].reproduced == pytest.approx(rows["packet", "own"].reproduced, rel=0.2)
    assert rows["packet", "left"].reproduced > rows["packet", "segments"].reproduced > 1000
    assert [row.n for row in result.rows] == [2, 2, 2, 2, 2, 0, 0, 0]
    assert (tmp_path / "made" / "captured" / "all" / "manifest.json").is_file()
