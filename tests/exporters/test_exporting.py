"""Scenarios as scripts for other programs: those programs read them, and what is not in them is named."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_networks import dumbbell

import ackclock as ac
from ackclock import exporters
from ackclock.cli.program import application
from ackclock.errors import InputError

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))


def small_text(queue, limit, congestion, more):
    return f"""
name = "Two flows"
duration = "3s"
{dumbbell("5Mbit", "20ms", limit, queue)}
[record]
interval = "100ms"
[[flows]]
count = 2
congestion = "{congestion}"
{more}
"""


NAMED = small_text(queue="pfifo", limit="20p", congestion="cubic", more="").replace(
    "[[flows]]", "[[flows]]\nname = 'a ↓ b & \"c\" <d>'"
)


def small(queue="pfifo", limit="20p", congestion="cubic", more=""):
    return ac.loads(small_text(queue=queue, limit=limit, congestion=congestion, more=more)).plan()


def call(*arguments):
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


def reads(program: str, *arguments: str, text: str) -> None:
    """Lets a program look at a script; without the program there is nothing to see."""
    if shutil.which(program) is None:
        pytest.skip(f"no {program}")
    done = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def commands(script: str) -> list[str]:
    return [line for line in script.splitlines() if line and not line.lstrip().startswith(("#", "%%", "//"))]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_example_becomes_scripts_or_is_rejected_by_name(path):
    loaded = ac.load(path)
    plan = loaded.points([0]).__next__().plan if loaded.sweep else loaded.plan()
    for target in exporters.TARGETS:
        try:
            script = exporters.export(plan, target)
        except exporters.ExportError as error:
            assert all(line.startswith("Unsupported: a script for ") for line in str(error).splitlines())
            continue
        assert script == exporters.export(plan, target)
        for note in script.notes:
            assert f"- {note}" in script.text
        if target in ("tc", "flent"):
            reads("sh", "-n", text=script.text)


def test_the_script_of_tc_has_the_engines_commands_and_a_client_for_each_flow():
    script = exporters.export(small(more='start = "500ms"'), "tc").text
    assert "tc -n q0 class add dev out parent 1: classid 1:1 htb rate 5000000bit" in script
    assert "tc -n q0 qdisc add dev out parent 1:1 handle 10: pfifo limit 20" in script
    clients = [line for line in commands(script) if "iperf3 -c" in line]
    assert len(clients) == 2
    assert clients[1].startswith(
        "(sleep 0.5; ip netns exec tx0 iperf3 -c 10.2.0.1 -B 10.1.0.1 -t 2 -C cubic -J -p 5202"
    )
    assert "exec unshare" in script
    assert 'tc -n q0 -s qdisc show dev out | sed "s/^qdisc [^ ]* [^ ]*/& dev q0/"' in script


def test_udp_and_transfers_are_reported_with_their_size_and_rate():
    more = 'size = "2MB"\n[[traffic]]\nkind = "udp"\npacket = "1000B"\nrate = "100/s"'
    script = exporters.export(small(more=more), "tc").text
    assert "iperf3 -c 10.2.0.1 -B 10.1.0.1 -n 2000000 -C cubic" in script
    assert "-u -l 1000 -b 800000 -t 3" in script


TRANSFERS = """
[[traffic]]
kind = "poisson"
rate = "{rate}"
congestion = "reno"
size = "10kB"
[tcp]
stack = "ns2"
sack = true
"""


@pytest.mark.parametrize(("target", "line"), [("ns2", "transfer 2 1 $src0 $dst0 "), ("ns3", "    {2, ")])
def test_a_simulator_is_reported_of_each_transfer(target, line):
    script = exporters.export(small(congestion="reno", more=TRANSFERS.format(rate="5/s")), target).text
    assert line in script
    with pytest.raises(exporters.ExportError, match="more than 1000 transfers"):
        exporters.export(small(congestion="reno", more=TRANSFERS.format(rate="500/s")), target)


def test_one_device_gets_the_bottlenecks_rate_and_queue():
    script = exporters.export(small("fq_codel", "200p"), "tc", "eth0").text
    reads("sh", "-n", text=script)
    assert [line.split()[:3] for line in commands(script)[-3:]] == [
        ["tc", "qdisc", "add"],
        ["tc", "class", "add"],
        ["tc", "qdisc", "add"],
    ]
    assert "fq_codel limit 200" in script
    assert "netns" not in script
    for wrong in ("eth0; reboot", "$(x)", "a" * 16):
        with pytest.raises(exporters.ExportError):
            exporters.export(small(), "tc", wrong)
    with pytest.raises(InputError, match="device"):
        exporters.export(small(), "ns2", "eth0")


@pytest.mark.parametrize(
    ("target", "plan", "message"),
    [
        ("ns2", {"congestion": "dctcp"}, 'a script for ns-2 has no congestion control "dctcp"'),
        ("ns2", {"queue": "codel", "limit": "100p"}, 'no queue discipline "codel"'),
        ("ns3", {"congestion": "compound"}, 'no congestion control "compound"'),
        ("tc", {"queue": "redfavor", "limit": "100KB"}, 'queue discipline "redfavor"'),
    ],
)
def test_what_a_program_has_not_is_rejected_with_status_3(tmp_path, target, plan, message):
    values = {"queue": "pfifo", "limit": "20p", "congestion": "cubic", "more": "", **plan}
    (tmp_path / "s.toml").write_text(small_text(**values))
    result = call("export", tmp_path / "s.toml", "--to", target)
    assert (result.exit_code, result.stdout) == (3, "")
    assert message in result.stderr


#: A name that would be a command, or end a comment, in each of the languages.
HOSTILE = 'x\n"; rm -rf / # $(touch owned) `id` [exec id] { \\ */ #include %% --> "] \u2028 exit'


def test_names_are_comments_whatever_they_are():
    plan = small()
    groups = tuple(replace(group, name=HOSTILE) for group in plan.groups)
    links = tuple(replace(link, name=HOSTILE) for link in plan.links)
    hostile = replace(plan, name=HOSTILE, groups=groups, links=links)
    for target in exporters.TARGETS:
        script = exporters.export(hostile, target).text
        assert len(commands(script)) == len(commands(exporters.export(plan, target).text)), target
        named = "\n".join(line for line in script.splitlines() if "include" in line and "ns3/" not in line)
        assert not re.search(r"\$\(touch|`id`|\[exec|\*/|\\ \*|\u2028", named), target


def test_the_diagram_has_queues_ways_and_rates():
    script = exporters.export(small(), "mermaid").text
    assert commands(script) == [
        "flowchart LR",
        '    q0["bottleneck<br/>pfifo 20 packets"]',
        '    s0(["2 × cubic"])',
        '    r0(["receivers"])',
        '    s0 -->|"0 ms"| q0',
        '    q0 -->|"5 Mb/s, 10 ms"| r0',
        '    r0 -.->|"base RTT 20 ms"| s0',
    ]
    named = exporters.export(ac.loads(NAMED).plan(), "mermaid").text
    assert 's0(["2 × a ↓ b #38; #34;c#34; #60;d#62;"])' in named
    routed = exporters.export(ac.load(ROOT / "scenarios" / "parking-lot.toml").plan(), "mermaid").text
    assert 'n0 <-->|"50 Mb/s, 5 ms<br/>pfifo 61 packets"| n1' in routed


def test_flent_gets_a_stream_and_a_control_for_each_flow():
    script = exporters.export(small(congestion="bbr"), "flent").text
    assert "--test-parameter upload_streams=2" in script
    assert "--test-parameter cc_algos=bbr,bbr" in script


def test_tcl_is_complete(tmp_path):
    (tmp_path / "s.tcl").write_text(exporters.export(small(), "ns2").text)
    reads("tclsh", text=f"if {{![info complete [read [open {tmp_path / 's.tcl'}]]]}} {{exit 1}}\n")


def test_ns2_runs_its_script_and_agrees_with_the_packet_engine(tmp_path):
    """One flow through a drop-tail queue: the link is full in both, and the queue as long as a sawtooth leaves it."""
    if shutil.which("ns") is None:
        pytest.skip("no ns")
    plan = ac.loads(small_text(queue="pfifo", limit="20p", congestion="reno", more="").replace('"3s"', '"20s"')).plan()
    (tmp_path / "s.tcl").write_text(exporters.export(plan, "ns2").text)
    subprocess.run(["ns", "s.tcl"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    samples = [line.split() for line in (tmp_path / "samples").read_text().splitlines()]
    queued = [float(row[3]) for row in samples if row[0] == "q" and float(row[1]) > 5]
    measured = ac.run(plan, seeds=[1]).metrics()["summary"]
    assert sum(queued) / len(queued) == pytest.approx(measured["queue_mean_p"]["mean"], rel=0.35)


def test_red_has_its_thresholds_in_packets_and_its_weight(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the script leaves files where it runs
    script = exporters.export(small("red", '60KB", min = "15KB", max = "45KB'), "ns2").text
    assert "set thresh_ 9.907" in script  # 15,000 bytes in packets of 1514 bytes
    assert "set linterm_ 50" in script
    reads("ns", text=re.sub(r"\$ns run", "exit 0", script)) if shutil.which("ns") else None


@pytest.mark.oracle
def test_ns3_compiles_and_runs_its_program(tmp_path):
    if not Path("/usr/include/ns3/core-module.h").exists():
        pytest.skip("no libns3-dev")
    script = exporters.export(small(), "ns3").text
    (tmp_path / "s.cc").write_text(script)
    command = next(line for line in script.splitlines() if "g++" in line).strip("/ ").replace("FILE", "s.cc").split()
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run(["./a.out"], cwd=tmp_path, check=True, timeout=100)
    last = (tmp_path / "links").read_text().splitlines()[-1].split()
    assert float(last[6]) * 8 / 3 == pytest.approx(5e6, rel=0.05)


def test_the_command_writes_a_file_and_reports_what_is_not_in_it(tmp_path):
    (tmp_path / "s.toml").write_text(
        small_text(queue="pfifo", limit="20p", congestion="cubic", more='start = { jitter = "1s" }')
    )
    result = call("export", tmp_path / "s.toml", "--to", "tc", "--out", tmp_path / "s.sh")
    assert result.exit_code == 0, result.output
    assert "not in the script: starts that are drawn from up to 1 s" in result.stderr
    assert (tmp_path / "s.sh").read_text().startswith("#!/bin/sh\n# Two flows\n")
    result = call("export", tmp_path / "s.toml", "--to", "vhdl")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


def test_each_direction_of_a_line_can_be_a_device():
    plan = ac.load(ROOT / "scenarios" / "asymmetric.toml").plan()
    down, up = (exporters.export(plan, "tc", "eth0", link) for link in (None, "up"))
    assert "rate 10000000bit" in down.text
    assert "the bottleneck 'up': --device DEVICE --link up writes it" in down.notes
    assert "rate 2000000bit" in up.text
    with pytest.raises(InputError, match='link: found "side"; expected with a device, one of down, up'):
        exporters.export(plan, "tc", "eth0", "side")


@pytest.mark.parametrize("device", [None, "eth0"])
@pytest.mark.parametrize("scenario", ["cellular", "opportunities"])
def test_a_rate_that_follows_a_trace_is_rejected_by_tc(scenario, device):
    loaded = ac.load(Path(__file__).parents[2] / "scenarios" / f"{scenario}.toml")
    plan = next(iter(loaded.points([0]))).plan if loaded.sweep else loaded.plan()
    with pytest.raises(exporters.ExportError, match="rates that follow traces: the script has one rate"):
        exporters.export(plan, "tc", device)
