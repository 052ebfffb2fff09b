"""Results that were given away and run again: the same, or not, and nothing of the bundle is executed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile

import pytest
import synthetic
from click.testing import CliRunner

from ackclock.bundles import archive, rerun
from ackclock.cli.program import application
from ackclock.dataset import Dataset, manifests
from ackclock.errors import InputError

SMALL = """\
duration = "1s"
repeats = 2
network = { topology = "dumbbell", rate = "2Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "8p" } }
flows = [{ count = 2, congestion = "cubic", start = { jitter = "50ms" } }]
"""
SWEPT = f'{SMALL}\n[sweep]\n"network.queue.limit" = ["4p", "8p"]\n'


def call(*arguments):
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


def done(*arguments) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def rejection(*arguments, status: int = 2) -> str:
    result = call(*arguments)
    assert result.exit_code == status, result.output
    assert result.stderr.count("\n") == 1
    return str(result.stderr)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A run, a quick one, a sweep, a search and a comparison."""
    place = tmp_path_factory.mktemp("results")
    (place / "small.toml").write_text(SMALL)
    (place / "swept.toml").write_text(SWEPT)
    done("run", place / "small.toml", "--out", place / "run", "--seed", "7")
    done("run", place / "small.toml", "--out", place / "quick", "--quick", "--no-report")
    done("sweep", place / "swept.toml", "--out", place / "sweep", "--metrics", "utilisation,jain", "--no-report")
    search = ["--vary", "limit=4p..12p/5", "--require", "utilisation >= 60%", "--repeats", "2"]
    done("find", place / "small.toml", *search, "--out", place / "found")
    done("compare", place / "small.toml", "--engine", "packet,fluid,theory", "--out", place / "compared", "--no-report")
    (place / "run" / "notes").mkdir()
    (place / "run" / "notes" / "figure.txt").write_text("what I saw")
    return place


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("run", "--without-data"),
        ("quick", "--data"),
        ("sweep", "--without-data"),
        ("found", "--data"),
        ("compared", "--data"),
    ],
)
def test_a_rerun_is_equal_byte_for_byte(results, tmp_path, name, data):
    done("bundle", results / name, "--out", tmp_path / "x.tar", data)
    (found,) = [json.loads(line) for line in done("rerun", tmp_path / "x.tar", "--json").splitlines()]
    assert (found["same_bytes"], found["verdict"], found["notes"]) == (True, "equal", [])
    assert found["metrics"]


def test_a_bundle_has_all_data_of_the_folder_and_its_figures_and_report(results, tmp_path):
    done("bundle", results / "run", "--out", tmp_path / "x.tar")
    done("bundle", results / "run", "--out", tmp_path / "y.tar")
    assert (tmp_path / "x.tar").read_bytes() == (tmp_path / "y.tar").read_bytes()
    with tarfile.open(tmp_path / "x.tar") as tar:
        tar.extractall(tmp_path / "new", filter="data")
    new = tmp_path / "new"
    assert (new / "about/run/scenario.toml").read_text() == SMALL
    assert json.loads((new / "about/run/plan.json").read_text())["seeds"] == [7]
    assert (new / "results/run/notes/figure.txt").read_text() == "what I saw"
    assert (new / "results/run/report.html").exists()
    assert done("check", new).count("sound") == 1
    (listed,) = json.loads((new / "bundle.json").read_text())["bundle"]["results"]
    assert {"name", "kind", "engine", "command", "versions", "ackclock", "data"} <= listed.keys()


def test_a_bundle_without_data_has_no_tables(results, tmp_path):
    for name in ("run", "compared", "sweep"):
        done("bundle", results / name, "--out", tmp_path / "x.tar", "--without-data")
        assert not [part for part in archive.read(tmp_path / "x.tar").parts if "parquet/" in part]


def test_several_results_are_rerun_one_after_the_other(results, tmp_path):
    done("bundle", results / "run", results / "quick", "--out", tmp_path / "x.tar")
    printed = done("rerun", tmp_path / "x.tar", "--out", tmp_path / "again")
    assert printed.count("reproduced, byte for byte") == 2
    assert Dataset.read(tmp_path / "again" / "run").runs[0]["seed"] == 7
    assert (tmp_path / "again" / "quick" / "manifest.json").exists()
    assert "--out" in rejection("bundle", results / "run", results / "quick")
    assert "two results of this name" in rejection("bundle", results / "run", results / "run", "--out", tmp_path / "x")


def rewritten(results, tmp_path, change, name="run"):
    """A bundle of another's making, whose sums are right: `change` is given its parts."""
    archive.pack([results / name], tmp_path / "x.tar")
    about = archive.read(tmp_path / "x.tar", tmp_path / "parts").about
    parts = {name: (tmp_path / "parts" / name).read_bytes() for name in archive.read(tmp_path / "x.tar").parts}
    change(parts)
    archive.write(tmp_path / "x.tar", {"results": about["results"]}, parts)
    return tmp_path / "x.tar"


def with_manifest(**changed):
    def change(parts):
        manifest = json.loads(parts["results/run/manifest.json"])
        files = manifest.pop("files")
        about = {key: value for key, value in manifest.items() if key not in ("sha256", "format")} | changed
        parts["results/run/manifest.json"] = manifests.content(about, files)

    return change


def test_a_metric_that_differs_is_reported_and_the_status_is_1(results, tmp_path):
    other = SMALL.replace("8p", "4p")
    path = rewritten(results, tmp_path, with_manifest(scenario=other))
    result = call("rerun", path)
    assert result.exit_code == 1
    assert "not reproduced: metrics differ" in result.stdout
    assert "plans the scenario differently: links[0].queue.parameters.limit_packets was 8 and is 4" in result.stdout
    assert result.stdout.count("differs") > 3


@pytest.mark.parametrize(
    "changed",
    [
        {"scenario": ""},
        {"scenario": 7},
        {"scenario": "duration ="},
        {"plan": None},
        {"plan": {"options": 3}},
        {"plan": {"options": {"linux": 3}}, "engine": "linux"},
        {"engine": "no such engine"},
        {"engine": None},
        {"engine": []},
        {"runs": []},
        {"runs": [{"run": 0}]},
        {"runs": 7},
        {"scenario_path": [1]},
        {"sweep": {}},
        {"sweep": 7},
        {"comparison": {}},
    ],
)
def test_a_manifest_of_anothers_making_is_one_line(results, tmp_path, changed):
    path = rewritten(results, tmp_path, with_manifest(**changed))
    if changed.keys() & {"sweep", "comparison"} or changed != {"scenario_path": [1]}:
        rejection("rerun", path)


@pytest.mark.parametrize(
    "metrics", [b"", b"[]", b"{}", b'{"runs": 3}', b'{"runs": [{}]}', b'{"runs": [{"metrics": 7}]}']
)
def test_metrics_of_anothers_making_are_one_line(results, tmp_path, metrics):
    path = rewritten(results, tmp_path, lambda parts: parts.update({"about/run/metrics.json": metrics}))
    rejection("rerun", path)


def test_a_bundle_cannot_name_a_file_of_this_machine_as_a_kernel(results, tmp_path):
    plan = json.loads((results / "run" / "manifest.json").read_text())["plan"]
    plan["options"] = {**plan["options"], "linux": {"kernel": "/bin/sh"}}
    path = rewritten(results, tmp_path, with_manifest(plan=plan, engine="linux"))
    assert "expected one of yours (--kernel)" in rejection("rerun", path)


@pytest.mark.parametrize("engines", [["../run"], ["/etc"], [7], "packet", [], {}, None, ["fluid", "no such engine"]])
def test_engines_of_anothers_making_are_one_line(results, tmp_path, engines):
    told = json.dumps({"engines": engines, "unsupported": {}}).encode()
    change = {"results/compared/comparison.json": told}
    rejection("rerun", rewritten(results, tmp_path, lambda parts: parts.update(change), "compared"))


MINE = '''
import ackclock as ac

@ac.congestion_control
class Mine:
    """A window that stays."""

    def __init__(self, initial_window):
        self.cwnd, self.ssthresh = SEGMENTS, 1.0

    def on_ack(self, ack): ...
    def on_loss(self, loss): ...
    def on_timeout(self, now_s, in_flight): ...
'''


def program(folder, *arguments) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own: what it registers ends with it."""
    command = [sys.executable, "-m", "ackclock", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_rerun_takes_a_module(tmp_path, command):
    """A bundle holds no code: without the file nothing runs, and another file is noted."""
    for segments in (4, 5):
        (tmp_path / f"{segments}.py").write_text(MINE.replace("SEGMENTS", str(segments)))
    text = (SWEPT if command == "sweep" else SMALL).replace('"cubic"', '"mine"')
    (tmp_path / "mine.toml").write_text(text)
    first = program(tmp_path, command, "mine.toml", "--module", "4.py", "--out", "mine", "--no-report")
    assert first.returncode == 0, first.stderr
    assert program(tmp_path, "bundle", "mine").returncode == 0
    without = program(tmp_path, "rerun", "mine.bundle.tar")
    assert (without.returncode, without.stderr.count("\n")) == (2, 1)
    assert "found a result with mine, a file of whoever made it" in without.stderr
    assert "mine: reproduced, byte for byte" in program(tmp_path, "rerun", "mine.bundle.tar", "--module", "4.py").stdout
    other = program(tmp_path, "rerun", "mine.bundle.tar", "--module", "5.py")
    assert "mine is another file than it was" in other.stdout


def test_programs_are_not_rerun(results, tmp_path):
    path = rewritten(results, tmp_path, with_manifest(shell={}))
    assert "found the result of `ackclock shell`, whose programs ran in real time" in rejection("rerun", path)


def test_captures_are_bundled_but_not_rerun(tmp_path):
    synthetic.unplanned().write(tmp_path / "never-planned")
    manifest = {"ackclock": "0.1.0", "runs": [{"run": 0}], "capture": {}}
    Dataset(manifest, synthetic.unplanned().parts).write(tmp_path / "captured")
    done("bundle", tmp_path / "captured", "--out", tmp_path / "x.tar")
    assert "found the result of captures; expected a bundle of runs" in rejection("rerun", tmp_path / "x.tar")
    done("bundle", tmp_path / "never-planned", "--out", tmp_path / "x.tar")
    assert "expected" in rejection("rerun", tmp_path / "x.tar")


def test_incomplete_results_are_not_bundled(results, tmp_path):
    assert "no such result folder" in rejection("bundle", tmp_path / "nothing")
    data = Dataset.read(results / "run").write(tmp_path / "damaged")
    (data / "flows.parquet" / "part-0000.parquet").write_bytes(b"PAR1")
    assert "damaged" in rejection("bundle", data, "--out", tmp_path / "x.tar")
    data = Dataset.read(results / "run").write(tmp_path / "linked")
    (data / "secrets").symlink_to("/etc/passwd")
    assert "found a link" in rejection("bundle", data, "--out", tmp_path / "x.tar")
    assert not (tmp_path / "x.tar").exists()


def test_a_damaged_bundle_runs_nothing(results, tmp_path):
    archive.pack([results / "run"], tmp_path / "x.tar")
    damaged = bytearray((tmp_path / "x.tar").read_bytes())
    damaged[damaged.rindex(b"PAR1")] ^= 1
    (tmp_path / "x.tar").write_bytes(damaged)
    assert "damaged" in rejection("rerun", tmp_path / "x.tar", "--out", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_verdicts():
    def of(given, now, **options):
        runs = [[{"jain": value} for value in values] for values in (given, now)]
        return [metric.verdict for metric in rerun.metrics(*runs, **options)]

    assert of([0.5, 0.6], [0.5, 0.6]) == ["equal"]
    assert of([0.5, 0.6], [0.52, 0.61]) == ["within"]
    assert of([0.5, 0.51], [0.8, 0.81]) == ["differs"]
    assert of([0.5], [0.5 * (1 + 1e-12)]) == ["within"]
    assert of([0.5], [0.51]) == ["differs"]
    assert of([0.5], [0.51], exact=True) == ["differs"]
    assert of([0.5], [None]) == ["differs"]
    assert of([None], [None]) == []
    assert of([10**400, float("nan"), "x", 0.5], [0.5]) == ["equal"]


def test_nothing_is_run_for_a_bundle_of_nothing(tmp_path):
    archive.write(tmp_path / "x.tar", {"results": []}, {})
    with pytest.raises(InputError, match="found no results"):
        list(rerun.rerun(tmp_path / "x.tar"))


def test_a_bundle_does_not_go_into_what_it_holds(results, tmp_path, monkeypatch):
    shutil.copytree(results / "run", tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    assert call("bundle", ".").exit_code == 0
    assert (tmp_path / "run.bundle.tar").is_file()
    assert "found a place in a result" in rejection("bundle", ".", "--out", "notes/x.tar")


def test_an_existing_target_is_rejected_before_anything_runs(results, tmp_path):
    archive.pack([results / "run", results / "quick"], tmp_path / "x.tar")
    (tmp_path / "again" / "quick").mkdir(parents=True)
    (tmp_path / "again" / "quick" / "mine").write_text("mine")
    assert "which is left alone" in rejection("rerun", tmp_path / "x.tar", "--out", tmp_path / "again")
    assert not (tmp_path / "again" / "run").exists()
