"""What a command imports: each of these packages takes longer than the command may."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ackclock.cli import program

#: Never needed where nothing is drawn for print.
HEAVY = {"dask", "distributed", "matplotlib", "pandas", "plotly", "scipy"}

#: Nor these, where nothing is run.
FOR_RUNS = HEAVY | {"numpy", "polars", "pydantic", "jinja2", "ackclock._core", "ackclock.plan"}

#: What Typer's help would bring.
FOR_HELP = FOR_RUNS | {"markdown_it", "pygments"}

SMALL = """
duration = "2s"
network = { topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "1bdp" } }
flows = [{ count = 2, congestion = "cubic" }]
"""

#: A capture with TCP.
CAPTURE = Path(__file__).parents[2] / "crates/ackclock-capture/tests/data/pcapplusplus/tcp-malformed.pcap"

#: What only scenarios with other topologies, generated traffic or UDP need.
OTHER_KINDS = {
    *(f"ackclock.scenario.topology.{name}" for name in ("asymmetric", "fat_tree", "graph", "routed", "wiring", "y")),
    *(f"ackclock.scenario.traffic.{name}" for name in ("datagrams", "generated", "laws", "sizes", "counts")),
    "ackclock.scenario.planning.traffic",
}

PROGRAM = """
import atexit, sys
atexit.register(lambda: print("loaded:", *sorted(sys.modules), file=sys.stderr))
from ackclock.cli import main
main()
"""


def loaded(*arguments: str, **environment: str) -> set[str]:
    """The modules that are there at the end of a command."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    *_, names = done.stderr.splitlines()
    assert names.startswith("loaded: "), done.stderr
    return set(names.split()[1:])


@pytest.mark.parametrize(
    "arguments", [("--help",), ("run", "--help"), ("show",), ("show", "cubic"), ("--version",)], ids=" ".join
)
def test_what_runs_nothing_imports_nothing_heavy(arguments):
    heavy = FOR_HELP if "--help" in arguments else FOR_HELP - {"ackclock._core"}
    assert not loaded(*arguments) & heavy


def test_completion_imports_nothing_heavy():
    words = {"_ACKCLOCK_COMPLETE": "complete_bash", "COMP_WORDS": "ackclock show cu", "COMP_CWORD": "2"}
    assert not loaded(**words) & FOR_HELP


@pytest.mark.parametrize("report", [True, False], ids=["report", "no report"])
def test_a_run_imports_what_it_needs(tmp_path: Path, report):
    (tmp_path / "small.toml").write_text(SMALL)
    out = tmp_path / "out"
    options = ["--seed", "1", "--out", str(out), *([] if report else ["--no-report"])]
    found = loaded("run", str(tmp_path / "small.toml"), *options)
    assert (out / "report.html").exists() == report
    assert "polars" in found
    unwanted = HEAVY | OTHER_KINDS | {"rich.progress", "rich._emoji_codes"}
    assert not found & (unwanted | (set() if report else {"jinja2", "ackclock.figures.report"}))


def test_a_capture_needs_neither_scenarios_nor_plans():
    found = loaded("capture", str(CAPTURE), "--json")
    assert "ackclock._core" in found
    assert not found & (HEAVY | {"numpy", "polars", "pydantic", "typer", "tomllib", "ackclock.plan"})


def test_the_command_that_is_asked_for_is_made_alone_and_otherwise_all_are():
    def made(*words: str) -> set[str]:
        return {command.name for command in program.application(*words).registered_commands}

    assert made("run") == {"run"}
    assert made() == made("kernel") == made("rnu") == made("--help") == set(program.COMMANDS)


def test_nobody_looks_for_circles_at_the_start_or_the_end():
    """Of all that imports make; the end of the interpreter looks once more, but what is frozen is not among it."""
    source = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_stats()[2]["collections"], gc.get_freeze_count(), file=sys.stderr))
from ackclock.__main__ import main
main()
"""
    command = [sys.executable, "-c", source, "run", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    collections, frozen = map(int, done.stderr.split())
    assert collections == 0
    assert frozen > 10_000
