"""Shell completion: the words for each kind of value, and the protocols of bash, zsh and fish."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ackclock import algorithms
from ackclock.cli import completion, plot
from ackclock.engines import ENGINES
from ackclock.engines.linux.kernel import bundled_modules
from ackclock.experiments import cluster
from ackclock.gallery import entries
from ackclock.metrics import METRICS
from ackclock.scenario import key_reference, planning
from ackclock.scenario.topology import TOPOLOGIES

SCENARIO = Path(__file__).parents[2] / "scenarios" / "dumbbell.toml"


def completed(**environment: str) -> str:
    command = [sys.executable, "-m", "ackclock"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def bash_lines(*typed: str) -> list[str]:
    """Complete the last word; bash cuts at = and :."""
    line = "\n".join(("ackclock", *typed))
    return completed(_ACKCLOCK_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(typed))).split("\n")[:-1]


def bash(*typed: str) -> list[str]:
    """The words, without requests for files and folders."""
    return [line.removeprefix("plain,") for line in bash_lines(*typed) if line.startswith("plain,")]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (completion.metrics, METRICS),
        (completion.scalar_metrics, {name for name in METRICS if not METRICS[name].per_flow}),
        (completion.congestion, algorithms.names("congestion")),
        (completion.queues, algorithms.names("queue")),
        (completion.engines, ENGINES),
        (completion.loadable, bundled_modules.NAMES),
        (completion.entries, {entry.id for entry in entries()}),
        (completion.clusters, {f"{name}:" for name in cluster.KINDS}),
    ],
    ids=["metrics", "scalars", "congestion", "queues", "engines", "loadable", "entries", "clusters"],
)
def test_names_are_those_of_the_program(source, names):
    assert set(source()) == set(names)


def test_labels_are_those_of_the_program():
    assert completion.metrics() == {name: metric.label for name, metric in METRICS.items()}
    assert completion.queues() == {name: algorithms.title("queue", name) for name in algorithms.names("queue")}


def test_show_completes_all_that_it_explains():
    specs = [name for family in algorithms.FAMILIES for name in algorithms.names(family)]
    assert set(completion.show_names()) == {"metrics", *METRICS, *ENGINES, *specs, *key_reference.names()}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (("sw",), ["sweep"]),
        (("run", "--pert"), ["--perturb"]),
        (("kernel", "unload", "lin"), ["lincubic"]),
        (("check", "con"), ["control"]),
        (("doctor", "host", "st"), ["stalls"]),
        (("find", "--candidates", "fq_codel,co"), ["fq_codel,codel", "fq_codel,compound"]),
        (("sweep", "x.toml", "--metrics", "utilisation,ja"), ["utilisation,jain"]),
        (("sweep", "x.toml", "--metrics", "jain,jai"), []),
        (("run", "--engine", "packet,th"), ["packet,theory"]),
        (("run", "--set", "network.rtt"), ["network.rtt=", "network.rtt.from=", "network.rtt.to="]),
        (("run", "--set", "network.queue.discipline", "=", "fq_co"), ["fq_codel"]),
        (("run", "--set", "flows[0].congestion", "=", "bbr"), ["bbr", "bbr3"]),
        (("run", "--set", "record.pack"), ["record.packets="]),
        (("run", "--set", "record.packets", "="), ["false", "true"]),
        (("find", "--vary", "limi"), ["limit="]),
        (("find", "--vary", "discipline", "=", "codel,fq_co"), ["codel,fq_codel"]),
        (("find", "--require", "'jai"), ["jain"]),
        (("find", "--best", "min", ":", "jai"), ["jain"]),
        (("find", "--best", "mi"), ["min:"]),
        (("find", "--engine", "=", "pack"), ["packet"]),
        (("plot", "results/x", "cwnd_"), ["cwnd_total"]),
        (("plot", "results/x", "--between", "1", "2", "cwnd_"), ["cwnd_total"]),
        (("show", "dumb"), ["dumbbell"]),
        (("show", "queue_delay_p"), ["queue_delay_p95_s"]),
        (("reproduce", "B5.2"), ["B5.21-5.22", "B5.23-5.24"]),
        (("nonsense", "--x", "y"), []),
    ],
    ids=" ".join,
)
def test_bash(typed, expected):
    assert bash(*typed) == expected


def test_bash_completes_files_and_folders():
    assert bash_lines("run", "scenarios/du") == ["file,scenarios/du"]
    assert bash_lines("run", "--out", "re") == ["dir,re"]
    assert bash_lines("check", "re") == ["dir,re"]


def test_many_keys_are_completed_up_to_the_next_dot():
    assert bash("run", "--set", "netw") == ["network."]
    found = bash("run", "--set", "network.")
    assert {"network.rate=", "network.queue.", "network.topology="} <= set(found)


def test_topologies():
    assert set(bash("run", "--set", "network.topology", "=")) == set(TOPOLOGIES)


def test_zsh_and_fish_get_the_complete_word_and_its_description():
    title = algorithms.title("queue", "codel")
    zsh = {"_ACKCLOCK_COMPLETE": "zsh_complete", "COMP_CWORD": "3"}
    assert completed(**zsh, COMP_WORDS="ackclock find --candidates fq_codel,cod") == f"plain\nfq_codel,codel\n{title}\n"
    line = "ackclock run --set network.topology=dumb"
    assert completed(**zsh, COMP_WORDS=line) == "plain\nnetwork.topology=dumbbell\n_\n"
    zsh["COMP_CWORD"] = "2"
    assert completed(**zsh, COMP_WORDS="ackclock find --engine=pack") == "plain\n--engine=packet\n_\n"
    fish = {"_ACKCLOCK_COMPLETE": "fish_complete", "COMP_CWORD": "jai"}
    assert completed(**fish, COMP_WORDS="ackclock show jai") == f"plain,jain\t{METRICS['jain'].label}\n"


def test_kinds_of_figures():
    assert set(bash("plot", "x", "")) == set(plot.all_kinds())


@pytest.mark.parametrize(
    ("key", "value"),
    [("network.rate", "1Gbit"), ("network.queue.limit", "50p"), ("flows[0].count", 2), ("tcp.delayed_ack", True)],
)
def test_keys_are_those_of_a_scenario(key, value):
    assert key in completion.scenario_keys()
    planning.load(SCENARIO).with_({key: value})


def test_tables_are_not_keys():
    keys = completion.scenario_keys()
    assert not {"network", "flows", "network.branches", "record"} & set(keys)
    assert set(keys["flows[0].congestion"]) == set(algorithms.names("congestion"))
    assert keys["linux.sysctls"] == []


@pytest.mark.parametrize(
    "typed", [("find", "--candidates", "fq_codel,co"), ("run", "--set", "netw"), ("sweep", "x", "--metrics", "ja")]
)
def test_a_completion_is_quick(typed):
    def seconds() -> float:
        before = os.times()
        bash(*typed)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(seconds() for _ in range(5)) <= 0.15


def test_bash_puts_no_blank_after_a_sign(tmp_path):
    shown = [sys.executable, "-m", "ackclock", "--show-completion", "bash"]
    script = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    (tmp_path / "ackclock").write_text(f'#!/bin/sh\nexec {sys.executable} -m ackclock "$@"\n')
    (tmp_path / "ackclock").chmod(0o755)
    line = """
compopt() { printf 'compopt %s %s\\n' "$@"; }
COMP_WORDS=(ackclock run --set network.frame_o); COMP_CWORD=3
_ackclock_completion ackclock
printf '<%s>\\n' "${COMPREPLY[@]}"
"""
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script + line], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "compopt -o nospace\n<network.frame_overhead=>\n"


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_installing_writes_the_script_and_prints_its_path(tmp_path, shell):
    command = [sys.executable, "-m", "ackclock", "--install-completion"]
    environment = os.environ | {"HOME": str(tmp_path), "SHELL": f"/usr/bin/{shell}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    path = tmp_path / completion.PLACES[shell]
    assert done.stdout == f"wrote {path}; restart the shell\n"
    assert "_ACKCLOCK_COMPLETE" in path.read_text()


def test_an_unknown_shell_is_one_line():
    command = [sys.executable, "-m", "ackclock", "--show-completion", "tcsh"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
