"""`ackclock doctor host`, as somebody types it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from ackclock.capture import clock
from ackclock.cli.program import application
from ackclock.cli.terminal import host
from ackclock.dataset import Dataset
from ackclock.doctor import Examined

PARTS = {
    "all": ["--duration", "50ms", "--repeats", "1", "--disk"],
    "stalls": ["stalls", "--duration", "50ms"],
    "disk": ["disk", "--repeats", "1"],
}


def output(*words: object, status: int = 0) -> str:
    result = CliRunner().invoke(application, ["doctor", "host", *map(str, words)])
    assert result.exit_code == status, result.output
    return result.output


def part(name: str, folder: object) -> list[str]:
    return PARTS[name] + ([] if name == "stalls" else [str(folder)])


@pytest.mark.parametrize("name", PARTS)
def test_each_part_prints_its_findings(name, tmp_path):
    text = output(*part(name, tmp_path))
    assert "Linux" in text.splitlines()[0]
    assert ("gap" in text) == (name != "disk")
    assert ("write to the disk" in text) == (name != "stalls")
    assert "* " in text


def test_as_json_and_as_a_result(tmp_path):
    words = [*part("all", tmp_path), "--json", "--out", tmp_path / "found", "--log", tmp_path / "clock.csv"]
    answers = json.loads(output(*words).splitlines()[0])
    assert set(answers) == {"host", "stalls", "disk", "findings"}
    data = Dataset.read(tmp_path / "found")
    assert data.frame("disk").height == 20
    assert data.frame("clock_gaps").height == len(answers["stalls"]["gaps"])
    assert data.manifest["host"]["disk"]["folder"] == str(tmp_path)
    log = clock.read(tmp_path / "clock.csv")
    assert log.last_s - log.first_s == pytest.approx(answers["stalls"]["watched_s"], abs=1e-5)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--duration", "x"], '--duration: found "x"; expected a time'),
        (["--duration", "0s"], '--duration: found "0s"; expected a time from 10ms to 720h'),
        (["stalls", "--duration", "3000h"], '--duration: found "3000h"; expected a time from 10ms to 720h'),
        (["disk", ".", "--rate", "fast"], '--rate: found "fast"; expected a'),
        (["disk", ".", "--force"], "--force: found no --device; expected the block device that is to be overwritten"),
        (["disk", "/none/of/it"], "/none/of/it: found No such file or directory; expected a folder"),
        (["--disk", "/none/of/it"], "/none/of/it: found No such file or directory; expected a folder"),
        (["network", "--", "-oProxyCommand=x"], 'HOST: found "-oProxyCommand=x"; expected a host as ssh knows it'),
        (["network", "a b"], 'HOST: found "a b"; expected a host as ssh knows it, such as "alice"'),
        (
            ["network", "a", "--flows", "0"],
            '--flows: found "0"; expected different numbers from 1 to 300, such as 1,10',
        ),
        (["network", "a", "--flows", "1,1"], '--flows: found "1,1"; expected different numbers from 1 to 300'),
        (["network", "a", "--flows", "1,301"], '--flows: found "1,301"; expected different numbers from 1 to 300'),
        (["network", "a", "--flows", "many"], '--flows: found "many"; expected different numbers from 1 to 300'),
        (["network", "a", "--duration", "0.5s"], '--duration: found "0.5s"; expected a time from 1s to 300s'),
        (["network", "a", "--duration", "soon"], '--duration: found "soon"; expected a time'),
        (["network", "a", "--direction", "up"], '--direction: found "up"; expected to, from, both'),
        (["network", "a", "--server", "both"], '--server: found "both"; expected remote or local'),
        (
            ["network", "a", "--addresses", "alice"],
            "--addresses: found 'alice'; expected --addresses LOCAL,REMOTE: IPv4 addresses",
        ),
        (
            ["network", "a", "--ssh-config", "/none"],
            "--ssh-config: found no file /none; expected an ssh configuration",
        ),
        (["stalls", "--log", "/none/clock.csv"], "--log: /none: found no such directory"),
        (["stalls", "--log", "/"], "--log: found /, a folder; expected a file"),
    ],
)
def test_errors_are_one_line(words, line):
    text = output(*words, status=2)
    assert text.startswith(line), text
    assert len(text.splitlines()) == 1


def test_a_host_has_figures_and_no_report(tmp_path):
    output(*part("disk", tmp_path), "--out", tmp_path / "found")
    for words, status in ((["plot", tmp_path / "found", "disk"], 0), (["report", tmp_path / "found"], 2)):
        result = CliRunner().invoke(application, [*map(str, words)])
        assert result.exit_code == status, result.output
    assert result.output.endswith("(`ackclock plot DIR gaps` and `disk` draw that of a host)\n")


def test_other_files_at_out_are_kept(tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    text = output("stalls", "--duration", "1h", "--out", tmp_path, status=2)
    assert "which is left alone" in text


def test_a_file_called_host_is_still_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(application, ["doctor", "./host"])
    assert result.exit_code == 2
    assert result.output.startswith("host: found")


@pytest.mark.parametrize(("server", "who"), [("remote", "alice"), ("local", "this host")])
def test_the_listening_side_is_named(capsys, server: str, who: str):
    network = {"hosts": {}, "to": "alice", "repeats": 1, "duration_s": 5.0, "server": server, "cells": []}
    machine = {"name": "vm", "kernel": "6.1.0", "processors": 2, "virtual_machine": True}
    host.print_host(Examined(Dataset({"runs": []}, {}), {"host": machine, "network": network}))
    assert f"; {who} listened." in " ".join(capsys.readouterr().out.split())
