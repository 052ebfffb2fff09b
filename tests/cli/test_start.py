"""The imports of commands: each of these packages takes longer than the command may."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ackclock.cli import program

#: Packages that are only needed for figures in print.
HEAVY = {"dask", "distributed", "matplotlib", "pandas", "plotly", "scipy"}

#: Packages that are not needed where nothing is run.
FOR_RUNS = HEAVY | {"numpy", "polars", "pydantic", "jinja2", "ackclock._core", "ackclock.plan"}

#: Nor these, where only help is printed or a word completed.
FOR_HELP = FOR_RUNS | {"markdown_it", "pygments", "rich"}

SMALL = """
duration = "2s"
network = { topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "1bdp" } }
flows = [{ count = 2, congestion = "cubic" }]
"""

#: A capture with TCP.
CAPTURE = Path(__file__).parents[2] / "crates/ackclock-pcap/tests/data/pcapplusplus/tcp-malformed.pcap"

#: Modules of other topologies, generated traffic and UDP.
OTHER_KINDS = {
    *(f"ackclock.scenario.topology.{name}" for name in ("asymmetric", "data_centres", "graph", "multi_bottleneck")),
    "ackclock.scenario.topology.routed",
    *(f"ackclock.scenario.traffic.{name}" for name in ("datagrams", "generated", "sizes")),
    "ackclock.scenario.planning.traffic",
}

PROGRAM = """
import atexit, sys
atexit.register(lambda: print("loaded:", *sorted(sys.modules), file=sys.stderr))
from ackclock.__main__ import main
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
def test_commands_that_run_nothing_import_nothing_heavy(arguments):
    heavy = FOR_HELP if "--help" in arguments else FOR_HELP - {"ackclock._core", "rich"}
    assert not loaded(*arguments) & heavy


def test_completion_imports_nothing_heavy():
    words = {"_ACKCLOCK_COMPLETE": "bash_complete", "COMP_WORDS": "ackclock show cu", "COMP_CWORD": "2"}
    assert not loaded(**words) & FOR_HELP


@pytest.mark.parametrize("report", [True, False], ids=["report", "no report"])
def test_a_run_imports_no_unused_packages(tmp_path: Path, report):
    (tmp_path / "small.toml").write_text(SMALL)
    out = tmp_path / "out"
    options = ["--seed", "1", "--out", str(out), *([] if report else ["--no-report"])]
    found = loaded("run", str(tmp_path / "small.toml"), *options)
    assert (out / "report.html").exists() == report
    assert "polars" in found
    unwanted = HEAVY | OTHER_KINDS | {"rich.progress", "rich._emoji_codes"}
    assert not found & (unwanted | (set() if report else {"jinja2", "ackclock.figures.report"}))


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_capture_imports_neither_scenarios_nor_plans(options):
    found = loaded("capture", str(CAPTURE), *options)
    assert "ackclock._core" in found
    assert not found & (HEAVY | {"numpy", "polars", "pydantic", "tomllib", "ackclock.plan"})
    assert ("rich" in found) == (not options)


@pytest.mark.parametrize(("words", "modules"), [(("--help",), set()), (("table", "--help"), {"table"})], ids=str)
def test_only_the_command_that_is_used_is_imported(words, modules):
    names = {"import_" if name == "import" else name.replace("-", "_") for name in program.COMMANDS}
    assert {name for name in names if f"ackclock.cli.{name}" in loaded(*words)} == modules


def test_the_collector_of_cycles_does_not_run_at_the_start_or_the_end():
    """The interpreter collects once more at its end, but frozen objects are not among those."""
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
