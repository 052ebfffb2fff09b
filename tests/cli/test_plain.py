"""Calls that are read without Typer say and do what they would with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ackclock.cli import plain

DATA = Path(__file__).parents[2] / "crates/ackclock-pcap/tests/data"
GOOD, BROKEN = str(DATA / "pcapplusplus/tcp-malformed.pcap"), str(DATA / "zeek/truncated-header.pcap")


def done(*words: str, cwd: Path) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "ackclock", *words]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    return found.returncode, found.stdout, found.stderr


@pytest.mark.parametrize(
    "files",
    [[GOOD], [GOOD, BROKEN], [GOOD, GOOD], ["no\nsuch.pcap"], [__file__], ["."], [""]],
    ids=["one", "two", "twice", "none", "no capture", "a folder", "nothing"],
)
def test_as_with_typer(files, tmp_path: Path):
    assert done("capture", "--json", *files, cwd=tmp_path) == done("capture", "--json", "--", *files, cwd=tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["capture", GOOD],
        ["capture", "--json"],
        ["capture", GOOD, "--json", "--filter", "tcp"],
        ["capture", GOOD, "--json", "--help"],
        ["doctor", GOOD, "--json"],
        [],
    ],
    ids=" ".join,
)
def test_all_else_is_left_to_typer(words):
    assert not plain.main(words)


def test_a_file_that_may_not_be_read_is_left_to_typer(monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    assert not plain.main(["capture", GOOD, "--json"])


def test_nobody_reads_it_any_more(tmp_path: Path):
    shell = 'set -o pipefail; "$0" -m ackclock capture "$1" --json 2>&1 | true'
    for file, status in ((GOOD, 0), ("none.pcap", 2)):
        found = subprocess.run(
            ["bash", "-c", shell, sys.executable, file], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (found.returncode in (status, 141), found.stdout, found.stderr) == (True, "", "")
