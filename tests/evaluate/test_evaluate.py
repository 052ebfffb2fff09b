"""`ackclock evaluate` as a user runs it: verdicts of known algorithms, exit statuses, resuming, the dossier's files."""

from __future__ import annotations

import hashlib
import html
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

import ackclock as ac
from ackclock.cli.program import application
from ackclock.dataset import manifests
from ackclock.errors import InputError
from ackclock.evaluate import cases, dossier, run
from ackclock.evaluate.verdicts import UNDECIDED, WORSE, Finding

#: Congestion control without a back-off worth the name: what RFC 9743 section 5.1.1 is there to keep out.
BAD = '{ kind = "aimd", increase = 50, beta = 0.99 }'


def call(*arguments):
    return CliRunner().invoke(application, ["evaluate", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("evaluate")


@pytest.fixture(scope="module")
def bad(folder):
    done = call(BAD, "--quick", "--section", "5.1.1", "--out", folder / "bad", "--json", "--require", "5.1")
    assert done.exit_code == 1, done.output
    return json.loads(done.stdout)


def test_no_back_off_fails_the_protection_against_collapse(bad, folder):
    failing = {finding["case"] for finding in bad["findings"] if finding["verdict"] == WORSE}
    assert failing == {"5.1.1-less-than-a-packet", "5.1.1-persistent-loss"}  # in a black hole the timer backs off


def findings(folder, name, candidate, *replaced, sizes=(4,)):
    """The findings of one of the package's scenarios, made shorter by replacing parts of its text."""
    text = (cases.FOLDER / f"{name}.toml").read_text()
    for before, after in replaced:
        assert before in text
        text = text.replace(before, after)
    place = folder / f"{name}-{hashlib.sha256(repr(candidate).encode()).hexdigest()[:6]}"
    own = place / "own"
    own.mkdir(parents=True)
    (own / f"{name}.toml").write_text(text)
    done = run.evaluate(cases.read([own], ac.load), run.Request(candidate, sizes=sizes), place / "out")
    return done.findings


@pytest.mark.parametrize(
    "candidate",
    ["scalable", "bbr", {"kind": "aimd", "increase": 50, "beta": 0.99}],
    ids=["scalable", "bbr", "no back-off"],
)
def test_aggressive_algorithms_are_more_harmful_to_cubic_in_a_shallow_buffer(folder, candidate):
    """Scalable: Y.-T. Li et al., Experimental evaluation of TCP protocols for high-speed networks, ToN 2007; BBRv1: R.
    Ware et al., Modeling BBR's interactions with loss-based congestion control, IMC 2019.
    """
    found = findings(
        folder,
        "5.2.1-competition",
        candidate,
        ('["cubic", "reno", "bbr", "bbr3"]', '["cubic"]'),
        ('["0.5bdp", "1bdp", "4bdp"]', '["0.5bdp"]'),
        ('duration = "40s"', 'duration = "30s"'),
        sizes=(4, 8),
    )
    assert {f.verdict for f in found if f.metric == "goodput_bps[victim]"} == {WORSE}


@pytest.mark.parametrize("name", ["cubic", "reno"])
def test_the_references_are_no_more_harmful_than_themselves(name, folder):
    done = call(name, "--quick", "--section", "5.1.1", "--out", folder / name, "--require", "all", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["findings"]
    assert {finding["verdict"] for finding in found} == {"no more harmful"}
    assert all(finding["excess"][name] == {"mean": 0, "low": 0, "high": 0, "n": 4} for finding in found)


def test_bbr_loses_packets_in_small_buffers_where_reno_and_cubic_do_not(folder):
    """RFC 9743 section 5.1.3; M. Hock et al.: Experimental Evaluation of BBR Congestion Control, ICNP 2017."""
    found = findings(
        folder,
        "5.1.3-high-loss",
        "bbr",
        ("= [2, 10, 100]", "= [2]"),
        ('["0.05bdp", "0.5bdp", "1bdp", "2bdp"]', '["0.05bdp", "0.5bdp"]'),
        ('rate = "50Mbit"', 'rate = "20Mbit"'),
        ('duration = "20s"', 'duration = "10s"'),
    )
    loss = [f for f in found if f.metric == "loss_rate"]
    assert {f.verdict for f in loss} == {WORSE}
    assert all(f.values["candidate"] > 10 * f.values["reno"] for f in loss)


def test_vegas_starves_next_to_cubic(folder):
    """J. Mo et al.: Analysis and Comparison of TCP Reno and Vegas, INFOCOM 1999."""
    found = findings(
        folder,
        "5.2-starvation",
        "vegas",
        ('"flows[0].count" = [1, 8]', '"flows[0].count" = [1]'),
        ('"flows[1].count" = [1, 8]', '"flows[1].count" = [1]'),
        ('limit = "1bdp"', 'limit = "4bdp"'),
    )
    verdicts = {f.kind: f.verdict for f in found}
    assert verdicts == {"harm": "no more harmful", "performance": WORSE}


def test_the_same_command_repeats_no_run_and_gives_the_same_dossier(bad, folder):
    dossier = (folder / "bad" / "dossier.json").read_bytes()
    before = {path: path.stat().st_mtime_ns for path in (folder / "bad" / "runs").rglob("part-*")}
    assert before
    done = call(BAD, "--quick", "--section", "5.1.1", "--out", folder / "bad")
    assert done.exit_code == 0, done.output
    worst = max(bad["findings"], key=lambda f: (f["verdict"] == WORSE, min(e["mean"] for e in f["excess"].values())))
    assert f"Most harmful, with the excess of harm over the closest reference:\n  {worst['case']}" in done.output
    assert "Not selected by --quick or --section: 5.1.2, " in done.output
    assert (folder / "bad" / "dossier.json").read_bytes() == dossier
    assert {path: path.stat().st_mtime_ns for path in (folder / "bad" / "runs").rglob("part-*")} == before


def test_missing_runs_are_repeated(bad, folder):
    copy = folder / "copy"
    shutil.copytree(folder / "bad", copy)
    shutil.rmtree(copy / "runs" / "packet" / "5.1.1-black-hole")
    assert call(BAD, "--quick", "--section", "5.1.1", "--out", copy).exit_code == 0
    assert (copy / "dossier.json").read_bytes() == (folder / "bad" / "dossier.json").read_bytes()


def test_an_evaluation_is_unfinished_until_its_dossier_is_written(bad, folder, tmp_path):
    out = tmp_path / "again"
    shutil.copytree(folder / "bad", out)
    assert manifests.verify(out).state == manifests.SOUND
    dossier.check_folder(out)  # the same command
    assert manifests.verify(out).state == manifests.SOUND
    dossier.check_folder(out, restart=True)
    assert manifests.verify(out).state == manifests.UNFINISHED
    assert not [*out.glob("dossier.*")]
    done = CliRunner().invoke(application, ["bundle", str(out), "--out", str(tmp_path / "bundle.zip")])
    assert done.exit_code == 2
    assert "found an evaluation that is not finished; expected all its runs" in done.output
    done = CliRunner().invoke(application, ["check", str(out)])
    assert "unfinished" in done.output


def test_a_restart_that_fails_leaves_no_earlier_dossier(bad, folder, tmp_path, monkeypatch):
    def fail(*_arguments):
        raise InputError("stopped")

    out = tmp_path / "again"
    shutil.copytree(folder / "bad", out)
    monkeypatch.setattr(run, "evaluate", fail)
    command = (BAD, "--quick", "--section", "5.1.1", "--out", out)
    assert call(*command).output == "stopped\n"
    assert (out / "dossier.json").is_file()
    assert call(*command, "--restart").output == "stopped\n"
    assert not [*out.glob("dossier.*")]
    assert manifests.verify(out).state == manifests.UNFINISHED


def test_a_required_section_without_a_value_does_not_pass():
    request = run.Request("cubic")
    empty = Finding("packet", "case", "5.1.1", {}, "harm", "loss_rate", UNDECIDED, {}, {}, {"cubic": {}, "reno": {}})
    judged = Finding("packet", "case", "7.1", {}, "harm", "loss_rate", UNDECIDED, {}, {}, {"cubic": {1: 0.0}})
    done = run.Evaluation(request, [], [empty, judged], {}, {}, Path())
    assert done.unjudged(["5.1", "7.1", "7", "all", "7.11"]) == ["5.1", "7.11"]


def test_the_status_of_a_required_section_without_a_value_is_1(folder):
    text = (cases.FOLDER / "5.1.1-black-hole.toml").read_text()
    own = folder / "without"
    own.mkdir()
    harm = text.replace('harm = ["sends_per_rtt"]', 'harm = ["fct_mean_s"]').replace('"5.1.1"', '"7.10"')
    assert harm.count("fct_mean_s") == 1
    (own / "none.toml").write_text(harm)
    arguments = ("cubic", "--quick", "--section", "7.10", "--scenarios", own, "--out", folder / "out-without")
    assert call(*arguments).exit_code == 0
    done = call(*arguments, "--require", "7.10")
    assert done.exit_code == 1
    assert "7.10: nothing was judged: the runs have no value of its metrics\n" in done.stderr


def test_an_interrupted_evaluation_resumes(bad, folder):
    out = folder / "interrupted"
    command = [sys.executable, "-m", "ackclock", "evaluate", BAD, "--quick", "--section", "5.1.1", "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not list(out.rglob("part-*")):
            time.sleep(0.05)
        process.terminate()
        assert process.stderr is not None
        assert process.stderr.read() == f"interrupted; finished runs are kept in {out}: the same command resumes\n"
    assert process.returncode == 128 + signal.SIGTERM
    assert not (out / "dossier.json").exists()
    assert manifests.verify(out).state == manifests.UNFINISHED
    assert call(BAD, "--quick", "--section", "5.1.1", "--out", out).exit_code == 0
    assert (out / "dossier.json").read_bytes() == (folder / "bad" / "dossier.json").read_bytes()


def test_undecided_findings_get_more_seeds(bad):
    sizes = set(run.QUICK_SIZES)
    assert {len(some) for f in bad["findings"] for some in f["by_seed"].values()} <= sizes
    for finding in bad["findings"]:
        if finding["verdict"] == UNDECIDED:
            assert {len(some) for some in finding["by_seed"].values()} == {max(sizes)}


def test_the_dossier_has_every_finding_and_every_scenario(bad, folder):
    page = (folder / "bad" / "dossier.html").read_text()
    text = (folder / "bad" / "dossier.md").read_text()
    for case in bad["cases"]:
        assert case["title"] in text
        assert f'id="{case["name"]}"' in page
        assert (folder / "bad" / "runs" / "packet" / case["name"] / "scenario.toml").is_file()
    assert text.count("| more harmful |") == 1 + sum(f["verdict"] == WORSE for f in bad["findings"])
    assert "7.10" in bad["not_covered"]
    assert "To be answered by the authors" in text


def test_changes_against_an_earlier_dossier_are_reported(bad, folder):
    done = call(
        "reno", "--quick", "--section", "5.1.1", "--out", folder / "reno2", "--against", folder / "bad/dossier.json"
    )
    assert done.exit_code == 0, done.output
    changes = json.loads((folder / "reno2" / "dossier.json").read_text())["changes"]
    reversed_ = {change["case"] for change in changes if change["before"] == WORSE}
    assert {"5.1.1-less-than-a-packet", "5.1.1-persistent-loss"} == reversed_
    same = call(
        "reno", "--quick", "--section", "5.1.1", "--out", folder / "reno2", "--against", folder / "reno2/dossier.json"
    )
    assert "Nothing changed significantly." in same.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (("cubik",), 2, 'NAME: found "cubik"; expected "cubic"'),
        (('{ kind = "aimd", beta = 7 }',), 2, "NAME: beta: found 7; expected at most"),
        (('{ kind = "aimd", nosuch = 1 }',), 2, "NAME: nosuch: found an unknown key"),
        (('{ kind = "aimd", beta = 2020-01-01 }',), 2, "NAME: "),
        (("[1]",), 2, "NAME: found a list of 1; expected a congestion control algorithm"),
        (("cubic", "--baseline", "renno"), 2, '--baseline: found "renno"; expected "reno"'),
        (("cubic", "--engine", "packet,"), 2, '--engine: found ""; expected one of'),
        (("cubic", "--engine", ""), 2, '--engine: found ""; expected one of'),
        (("cubic", "--seed", "-1"), 2, "--seed: found -1; expected a whole number from 0 to"),
        (("cubic", "--seed", str(2**63 - 1)), 2, f"--seed: found {2**63 - 1}; expected a whole number from 0 to"),
        (("cubic", "--require", "7.10"), 2, '--require: found "7.10", of which no scenario is selected that packet'),
        (("cubic", "--section", "5.1", "--require", "5.2"), 2, '--require: found "5.2", of which'),
        (("cubic", "--engine", "fluid", "--section", "6", "--require", "6.4"), 2, '--require: found "6.4", of which'),
        (("cubic", "--section", "8"), 2, '--section: found "8"; expected'),
        (("cubic", "--require", "5.7"), 2, '--require: found "5.7"; expected all, or'),
        (("cubic", "--scenarios", "/nonexistent"), 2, "--scenarios: found no folder /nonexistent"),
        (("cubic", "--engine", "quantum"), 2, "quantum"),
        (("cubic", "--engine", "theory", "--section", "7.7"), 3, "Unsupported"),
    ],
)
def test_mistakes_are_one_line(tmp_path, arguments, status, expected):
    done = call(*arguments, "--out", tmp_path / "out")
    assert done.exit_code == status
    assert expected in done.output
    assert done.output.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_another_result_is_not_overwritten_and_another_file_is_no_dossier(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    done = call("cubic", "--quick", "--section", "5.1.4", "--out", tmp_path)
    assert "found something that is not an ackclock result" in done.output
    done = call("cubic", "--against", tmp_path / "notes.txt")
    assert "found no dossier; expected the dossier.json of an evaluation" in done.output


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"verdict": "more harmful"', '"verdict": "bad"'),
        ('"verdict": "more harmful"', '"verdict": 1'),
        ('"kind": "harm"', '"kind": "good"'),
        ('"kind": "harm",', ""),
        ('"kind": "harm"', '"kind": "harm", "more": 1'),
        ('"point": {}', '"point": []'),
        ('"1": 0.5', '"one": 0.5'),
        ('"1": 0.5', '"1": NaN'),
        ('"1": 0.5', '"1": 1e308'),
        ('"1": 0.5', '"1": "0.5"'),
        ('"n": 1', '"n": 1.5'),
        ('"mean": 0.5', '"mean": Infinity'),
        ('{"cubic": {"1"', '{"cubic": ["1"], "reno": {"1"'),
        ('"findings": [', '"findings": [1, '),
    ],
)
def test_a_malformed_dossier_is_a_mistake_before_any_run(tmp_path, before, after):
    found = {"engine": "packet", "case": "c", "section": "5.1.1", "point": {}, "kind": "harm", "metric": "loss_rate"}
    found |= {"verdict": WORSE, "values": {}, "excess": {"cubic": {"mean": 0.5, "low": None, "high": None, "n": 1}}}
    text = json.dumps({"findings": [{**found, "by_seed": {"cubic": {"1": 0.5}}}]})
    path = tmp_path / "dossier.json"
    path.write_text(text)
    assert len(dossier.read_findings(path)) == 1
    assert before in text
    path.write_text(text.replace(before, after))
    done = call("cubic", "--quick", "--section", "5.1.1", "--against", path, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert done.output == f"{path}: found no dossier; expected the dossier.json of an evaluation\n"
    assert not (tmp_path / "out").exists()


def test_own_scenarios_are_added(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    text = (cases.FOLDER / "5.1.1-black-hole.toml").read_text()
    (own / "mine.toml").write_text(text.replace('section = "5.1.1"', 'section = "7.8"'))
    done = call("cubic", "--scenarios", own, "--section", "7.8", "--quick", "--dry-run")
    assert done.exit_code == 0, done.output
    assert "mine" in done.stdout
    assert "7.8-sudden-congestion" in done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script> &amp; *all* of _it_, `code`",
        "[a link](https://example.org) | a cell ![x](y)",
        "# heading",
        "- item",
        "+ item",
        "1. item",
        "3) item",
        "5.1 section",
        "===",
        "---",
        "~~~",
        r"rtt_mean_s \* and \\",
    ],
)
def test_text_of_users_is_shown_as_it_is_in_markdown(text):
    page = MarkdownIt("commonmark").enable("table")
    shown = dossier.escaped(text)
    for before in ("Before.\n", "Before.\n\n"):
        body = html.unescape(page.render(f"{before}{shown}\n")).replace("<p>", "").replace("</p>", "\n")
        assert [*filter(None, body.split("\n"))] == ["Before.", text]
    table = html.unescape(page.render("\n".join(dossier._table(("a", "b"), [(text, 2)]))))
    assert f"<td>{text}</td>\n<td>2</td>" in table
