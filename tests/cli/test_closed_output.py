"""`ackclock … | head`: when the output is closed, every command exits silently, as by SIGPIPE."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ackclock.cli.program import application
from ackclock.dataset import Dataset

SCENARIOS = Path(__file__).parents[2] / "scenarios"
DUMBBELL, SWEPT = str(SCENARIOS / "dumbbell.toml"), str(SCENARIOS / "buffer-sizing.toml")

COMMANDS = (
    ("--help",),
    ("--version",),
    ("run", "--help"),
    ("run", DUMBBELL, "--dry-run"),
    ("sweep", SWEPT, "--engine", "fluid", "--dry-run"),
    ("compare", DUMBBELL, "--engine", "packet,fluid", "--dry-run"),
    ("find", DUMBBELL, "--require", "jain >= 0.5", "--candidates", "codel,pie", "--dry-run"),
    ("export", DUMBBELL, "--to", "mermaid"),
    ("reproduce",),
    ("show",),
    ("show", "cubic"),
    ("show", "metrics"),
    ("show", "dumbbell"),
    ("show", "--schema"),
    ("new", "control", "mine", "--dry-run"),
    ("new", "queue", "mine", "--dry-run"),
)


def unread(*arguments: str, cwd: Path | None = None) -> tuple[int, str]:
    """The status and standard error of a command whose output's reader is gone before it begins."""
    ends = os.pipe()
    os.close(ends[0])
    command = [sys.executable, "-m", "ackclock", *arguments]
    try:
        done = subprocess.run(command, stdout=ends[1], stderr=subprocess.PIPE, text=True, cwd=cwd, check=False)
    finally:
        os.close(ends[1])
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: " ".join(Path(word).name for word in each))
def test_it_exits_silently(arguments):
    status, errors = unread(*arguments, cwd=SCENARIOS.parent)
    assert status == 141
    assert "roken" not in errors
    assert "Traceback" not in errors
    assert "Exception" not in errors


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_stream_that_the_caller_closed_reads_and_writes_nothing(closed, tmp_path):
    asked = f"run {DUMBBELL} --quick --set duration=20s --out out --no-report"
    done = subprocess.run(
        ["bash", "-c", f'"$0" -m ackclock {asked} {closed}', sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert len(Dataset.read(tmp_path / "out").flows) == 10


def test_a_run_is_still_written(tmp_path):
    asked = ("run", DUMBBELL, "--quick", "--set", "duration=20s", "--out", "out", "--no-report")
    status, errors = unread(*asked, cwd=tmp_path)
    assert (status, "roken" in errors) == (141, False)
    assert len(Dataset.read(tmp_path / "out").flows) == 10


def test_with_standard_error_in_the_same_pipe(tmp_path):
    shell = 'set -o pipefail; "$0" -m ackclock run no.toml 2>&1 | true'
    done = subprocess.run(
        ["bash", "-c", shell, sys.executable], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) in ((141, "", ""), (2, "", ""))


def test_errors_are_still_printed(tmp_path):
    status, errors = unread("run", "no.toml", cwd=tmp_path)
    assert status == 2
    assert errors == "no.toml: found no such file; expected a scenario file, or - for standard input\n"


def test_another_broken_pipe_is_reported(monkeypatch):
    from ackclock.cli import show

    def broken() -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(show, "print_catalog", broken)
    done = CliRunner().invoke(application, ["show"])
    assert (done.exit_code, done.stderr) == (1, "ackclock: Broken pipe\n")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "found no memory left; expected more, or a higher limit (ulimit -v)"),
        (
            RuntimeError("can't start new thread"),
            "found no room for another thread; expected higher limits (ulimit -u, ulimit -v)",
        ),
    ],
)
def test_exhausted_limits_are_one_line(error, message, monkeypatch):
    from ackclock.cli import show

    def exhausted() -> None:
        raise error

    monkeypatch.setattr(show, "print_catalog", exhausted)
    done = CliRunner().invoke(application, ["show"])
    assert (done.exit_code, done.stderr) == (1, f"ackclock: {message}\n")
