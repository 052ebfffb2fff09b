"""What a shell is told at a key press, as bash, zsh and fish ask."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ackclock import algorithms
from ackclock.cli import application, completing
from ackclock.completion import words
from ackclock.gallery import entries
from ackclock.metrics import METRICS
from ackclock.scenario import planning
from ackclock.scenario.key_reference import dotted_keys
from ackclock.scenario.topology import TOPOLOGIES

SCENARIO = Path(__file__).parents[2] / "scenarios" / "dumbbell.toml"


def asked(**environment: str) -> str:
    command = [sys.executable, "-m", "ackclock"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def bash(*typed: str) -> list[str]:
    """The last word completed; bash cuts at = and :."""
    line = "\n".join(("ackclock", *typed))
    return asked(_ACKCLOCK_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(typed))).split("\n")[:-1]


def test_the_words_are_those_of_the_program():
    assert words.FILE.read_text("utf-8") == completing.text(application()), "old: python tools/words.py"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (("sw",), ["sweep"]),
        (("run", "--check"), ["--check-phase"]),
        (("kernel", "unload", "lin"), ["lincubic"]),
        (("check", "con"), ["control"]),
        (("find", "--try", "fq_codel,co"), ["fq_codel,codel", "fq_codel,compound"]),
        (("sweep", "x.toml", "--metrics", "utilisation,ja"), ["utilisation,jain"]),
        (("sweep", "x.toml", "--metrics", "jain,jai"), [""]),
        (("run", "--engine", "packet,th"), ["packet,theory"]),
        (("run", "--set", "network.rtt"), ["network.rtt=", "network.rtt.from=", "network.rtt.to="]),
        (("run", "--set", "network.queue.discipline", "=", "fq_co"), ["fq_codel"]),
        (("run", "--set", "flows[0].congestion", "=", "bbr"), ["bbr", "bbr3"]),
        (("run", "--set", "record.pack"), ["record.packets="]),
        (("run", "--set", "record.packets", "="), ["false", "true"]),
        (("find", "--vary", "limi"), ["limit="]),
        (("find", "--vary", "discipline", "=", "codel,fq_co"), ["codel,fq_codel"]),
        (("find", "--need", "'jai"), ["jain"]),
        (("find", "--best", "min", ":", "jai"), ["jain"]),
        (("find", "--best", "mi"), ["min:"]),
        (("find", "--engine", "=", "pack"), ["packet"]),
        (("plot", "results/x", "cwnd_"), ["cwnd_total"]),
        (("plot", "results/x", "--between", "1", "2", "cwnd_"), ["cwnd_total"]),
        (("show", "dumb"), ["dumbbell"]),
        (("show", "queue_delay_p"), ["queue_delay_p95_s"]),
        (("reproduce", "B5.2"), ["B5.21-5.22", "B5.23-5.24"]),
        (("run", "scenarios/du"), [""]),
        (("run", "--out", "re"), [""]),
        (("nonsense", "--x", "y"), [""]),
    ],
    ids=" ".join,
)
def test_bash(typed, expected):
    assert bash(*typed) == expected


def test_many_keys_are_completed_a_name_at_a_time():
    assert bash("run", "--set", "netw") == ["network."]
    found = bash("run", "--set", "network.")
    assert {"network.rate=", "network.queue.", "network.topology="} <= set(found)


def test_topologies():
    assert set(bash("run", "--set", "network.topology", "=")) == set(TOPOLOGIES)


def test_zsh_and_fish_have_the_whole_word_and_what_it_is():
    line = "ackclock find --try fq_codel,cod"
    assert asked(_ACKCLOCK_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line) == (
        f"""_arguments '*: :(("fq_codel,codel":"{algorithms.title("queue", "codel")}"))'\n"""
    )
    line = "ackclock run --set network.topology=dumb"
    assert asked(_ACKCLOCK_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line) == (
        """_arguments '*: :(("network.topology=dumbbell"))'\n"""
    )
    assert asked(_ACKCLOCK_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="ackclock run sce") == "_files\n"
    fish = {"_ACKCLOCK_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert asked(**fish, _TYPER_COMPLETE_ARGS="ackclock show jai") == f"jain\t{METRICS['jain'].label}\n"
    fish["_TYPER_COMPLETE_FISH_ACTION"] = "is-args"
    for line, status in (("ackclock show jai", 0), ("ackclock run sce", 1)):
        command, told = [sys.executable, "-m", "ackclock"], {**fish, "_TYPER_COMPLETE_ARGS": line}
        assert subprocess.run(command, env=os.environ | told, check=False).returncode == status


def test_every_entry_of_the_gallery_is_there():
    assert bash("reproduce", "") == sorted(entry.id for entry in entries())


@pytest.mark.parametrize(
    ("key", "value"),
    [("network.rate", "1Gbit"), ("network.queue.limit", "50p"), ("flows[0].count", 2), ("tcp.delayed_ack", True)],
)
def test_keys_are_those_of_a_scenario(key, value):
    assert key in dotted_keys()
    planning.load(SCENARIO).with_({key: value})


def test_tables_are_no_keys():
    known = dotted_keys()
    assert not {"network", "network.queue", "flows", "network.branches", "record"} & set(known)
    assert known["flows[0].congestion"] == "congestion"


def test_a_completion_takes_little_time():
    def seconds() -> float:
        before = os.times()
        bash("find", "--try", "fq_codel,co")
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(seconds() for _ in range(5)) <= 0.15


def test_bash_puts_no_blank_behind_a_sign(tmp_path):
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
