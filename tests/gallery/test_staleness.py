"""Results that stand are not made again."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from small_networks import dumbbell

from ackclock.cli.program import application
from ackclock.gallery import Entry, result, runner

FILES = {
    "README.md": "# A small one\n\nWhy.\n",
    "scenario.toml": f"""
name = "small"
duration = "2s"
repeats = 1
{dumbbell("5Mbit", "20ms")}
[[flows]]
congestion = "reno"
""",
    "quick.toml": 'duration = "1s"\n',
    "published.csv": "claim,what,published,value,unit,where,how\nrate,goodput,5 Mb/s,5e6,bit/s,table 1,read\n",
    "check.py": """
from ackclock.gallery import Row
ENGINES = ("packet",)
MEASURES = {"rate": "goodput_bps"}
def check(measured, published):
    return [Row("rate", case["rate"], (0, 1e9), (0, 1e9)) for case in measured.values()]
""",
    "mechanisms.toml": """
[[mechanism]]
name = "a longer path"
says = "For a test."
moves = ["rate"]
changes.network.rtt = "40ms"
""",
}


@pytest.fixture
def only(tmp_path, monkeypatch):
    folder = tmp_path / "X1"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    entry = Entry(folder)
    monkeypatch.setattr("ackclock.gallery.entries", lambda: [entry])
    return entry


def call(*arguments):
    return CliRunner().invoke(application, ["reproduce", *map(str, arguments)])


def test_an_up_to_date_result_is_not_repeated(only, tmp_path, monkeypatch):
    """The same command goes on where it was interrupted; whatever a result comes of, a change of it is seen."""
    made = []
    run = runner.run
    monkeypatch.setattr(runner, "run", lambda *given, **more: made.append(given) or run(*given, **more))

    def goes_on(*arguments):
        made.clear()
        done = call("X1", "--quick", *arguments, "--out", tmp_path / "out", "--jobs", 1)
        assert done.exit_code == 0, done.output
        assert "agrees" in done.stdout
        assert (": up to date" in done.stdout) == (not made)
        return bool(made)

    assert goes_on()
    assert not goes_on()
    assert "all results are up to date" in call("X1", "--quick", "--dry-run", "--out", tmp_path / "out").stdout
    assert goes_on("--force")
    assert goes_on("--engine", "packet")
    assert goes_on()  # of all engines again
    for name in ("README.md", "mechanisms.toml"):
        (only.folder / name).write_text((only.folder / name).read_text() + "\n")
        assert not goes_on()
    (only.folder / "quick.toml").write_text('duration = "1.5s"\n')
    assert goes_on()
    monkeypatch.setattr(result, "_program", lambda: b"another")
    assert goes_on()
    (tmp_path / "out" / only.id / "reproduced.csv").write_text("")
    assert goes_on()
    assert not goes_on()


def test_up_to_date_ablations_are_not_repeated(only, tmp_path):
    def goes_on():
        done = call("X1", "--quick", "--ablation", "all", "--out", tmp_path / "out", "--jobs", 1)
        assert done.exit_code == 0, done.output
        return ": up to date" not in done.stdout

    assert goes_on()
    assert not goes_on()
    (only.folder / "quick.toml").write_text('duration = "1.5s"\n')
    assert goes_on()


def test_a_result_of_another_machine_is_stale(only):
    """By other engines than this machine has."""
    made = {runner.FULL, runner.QUICK}
    marks = {result.made_of(only, scale, lacks) for scale in made for lacks in ({"packet": None}, {"packet": "no"})}
    assert len(marks) == 4
    assert result.made_of(only, runner.FULL, {}, ["a"]) != result.made_of(only, runner.FULL, {}, ["b"])
