"""`--module FILE.py`: an algorithm in Python on the command line, in this process and in those of a sweep."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from small_networks import dumbbell

ALGORITHM = """
import ackclock as ac

@ac.congestion_control
class Kept:
    \"\"\"Reno that keeps a share of its window at a loss.\"\"\"

    def __init__(self, initial_window, *, kept: float = 0.5):
        self.kept, self.cwnd, self.ssthresh = kept, initial_window, float("inf")

    def on_ack(self, ack):
        if ack.may_grow:
            self.cwnd += ack.newly_acked * (1 if self.cwnd < self.ssthresh else 1 / self.cwnd)

    def on_loss(self, loss):
        self.ssthresh = self.cwnd = max(2, self.cwnd * self.kept)

    def on_timeout(self, now_s, in_flight):
        self.ssthresh, self.cwnd = max(2, self.cwnd * self.kept), 1
"""

SCENARIO = f"""
duration = "10s"
{dumbbell("10Mbit", "40ms")}
[[flows]]
count = 2
congestion = {{ kind = "kept", kept = 0.5 }}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kept.py").write_text(ALGORITHM)
    (tmp_path / "s.toml").write_text(SCENARIO)
    (tmp_path / "sweep.toml").write_text(SCENARIO + '[sweep]\n"flows[0].congestion.kept" = [0.5, 0.9]\n')
    return tmp_path


def _call(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "ackclock", *command]
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)


def test_a_run_and_its_manifest(folder: Path) -> None:
    done = _call(folder, "run", "s.toml", "--module", "kept.py", "--out", "r", "--no-report")
    assert done.returncode == 0, done.stderr
    assert "kept" in done.stdout
    manifest = (folder / "r" / "manifest.json").read_text()
    assert '"file": "kept.py"' in manifest
    assert '"sha256"' in manifest


def test_a_sweep_in_other_processes(folder: Path) -> None:
    options = ["--module", "kept.py", "--out", "w", "--no-report", "--jobs", "2", "--repeats", "2"]
    done = _call(folder, "sweep", "sweep.toml", *options, "--metrics", "queue_mean_p")
    assert done.returncode == 0, done.stderr
    points = pl.read_parquet(folder / "w" / "points.parquet")
    first, second = points.group_by("point", maintain_order=True).mean()["queue_mean_p"]
    assert first < second


def test_the_contract(folder: Path) -> None:
    command = ("check", "control", "kept", "--module", "kept.py")
    done = _call(folder, *command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ok: ") == 3
    (folder / "kept.py").write_text(ALGORITHM.replace("self.cwnd = max(2, self.cwnd * self.kept)", "self.cwnd = 1e6"))
    done = _call(folder, *command)
    assert done.returncode == 2
    assert "cwnd 1000000" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "linux"], '--module: found "kept.py" with --engine linux; expected --engine packet'),
        (["--set", "flows[0].congestion=reno"], 'found no flows with congestion = "kept"; expected some'),
        (["--set", "flows[0].congestion.kept=half"], 'kept: found "half"; expected a number'),
    ],
)
def test_mistakes(folder: Path, options: list[str], message: str) -> None:
    done = _call(folder, "run", "s.toml", "--module", "kept.py", "--out", "r", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (folder / "r").exists()
