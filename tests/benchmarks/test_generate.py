"""The scoreboard's captures on a cluster: the same files as on one core, by a real scheduler and a worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from clusters import cluster

GENERATE = Path(__file__).resolve().parents[2] / "benchmarks" / "scoreboard" / "generate.py"

#: The two cases beside each other that take least.
SMALL = ("--first", "202", "--cases", "2")

#: A worker's preamble: it notes each result that it is asked for.
NOTING = (
    "import ackclock.experiments.runner as r; made = r.write_remote; "
    "r.write_remote = lambda *given: (open({path!r}, 'a').write('x'), made(*given))[1]"
)


def call(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(GENERATE), str(out), *SMALL, *more]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def files(out: Path) -> dict[str, object]:
    """Return a folder's contents by path; of manifests all but the time of creation."""
    found = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    return {name: _timeless(content) if name.endswith("manifest.json") else content for name, content in found.items()}


def _timeless(manifest: bytes) -> dict[str, object]:
    told = json.loads(manifest)
    assert told.pop("created")
    assert told.pop("sha256")
    return told


def test_a_cluster_makes_the_same_files_as_one_core_and_keeps_existing_ones(tmp_path):
    here = call(tmp_path / "here", "--jobs", "1")
    assert here.returncode == 0, here.stderr
    with cluster() as made:
        worker = made.add(before=NOTING.format(path=str(tmp_path / "noted")))
        assert worker.address
        first = call(tmp_path / "there", "--first", "203", "--cases", "1", "--scheduler", made.address)
        rest = call(tmp_path / "there", "--scheduler", made.address)
    assert (first.returncode, rest.returncode) == (0, 0), first.stderr + rest.stderr
    assert sorted((first.stdout + rest.stdout).splitlines()) == here.stdout.splitlines()
    assert [line.split()[0] for line in rest.stdout.splitlines()] == ["case-0202"]
    assert (tmp_path / "noted").read_text() == "xx"
    expected = files(tmp_path / "here")
    assert {name.split("/")[1] for name in expected} >= {"captures", "case.json", "manifest.json"}
    assert files(tmp_path / "there") == expected


def test_what_the_options_cannot_be_is_one_line(tmp_path):
    refused = call(tmp_path / "out", "--scheduler", "tcp://127.0.0.1:1", "--jobs", "2")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "--scheduler: found --jobs as well; expected one of them\n"
    assert not (tmp_path / "out").exists()
