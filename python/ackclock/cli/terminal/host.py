"""The output of `ackclock doctor host`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from ackclock.cli.terminal import output
from ackclock.doctor import Examined, Finding
from ackclock.doctor.network.test_matrix import REMOTE
from ackclock.figures import numbers

#: Labels of the classes of gaps.
GAPS = {
    "scheduler": "scheduler",
    "steal": "other guests",
    "stop": "stopped",
    "pause": "machine paused",
    "step": "clock was set",
}

#: Limits of senders, as in the kernel's `TCP_INFO`.
LIMITS = {"receive_window": "rwnd", "send_buffer": "sndbuf", "congestion_window": "cwnd"}


def print_host(examined: Examined) -> None:
    """Print the host, a table for each part, and each finding with its evidence."""
    console = output.console()
    console.print(_machine(examined.analysis["host"]))
    if "stalls" in examined.analysis:
        _print_gaps(console, examined.analysis["stalls"])
    if "disk" in examined.analysis:
        _print_speeds(console, examined.analysis["disk"])
    if "network" in examined.analysis:
        _print_transfers(console, examined.analysis["network"])
    for finding in sorted(examined.findings, key=lambda finding: not finding.bad):
        _print_finding(console, finding)


def _machine(host: Mapping[str, Any]) -> Text:
    machine = "a virtual machine" if host["virtual_machine"] else "no virtual machine"
    processors = f"{host['processors']} processor{'s' if host['processors'] > 1 else ''}"
    return Text(f"{host['name']}: Linux {host['kernel']}, {processors}, {machine}.")


def _print_finding(console: Console, finding: Finding) -> None:
    sentence = Text(f"* {finding.sentence}", style="bold" if finding.bad else "")
    console.print("", sentence, Text(f"  {numbers.evidence_line(finding.evidence)}", style="dim"), sep="\n")
    if finding.next:
        console.print(Text(f"  {finding.next}"))


def _print_gaps(console: Console, stalls: Mapping[str, Any]) -> None:
    console.print()
    watched = numbers.value(stalls["watched_s"], "s")
    if not stalls["classes"]:
        console.print(f"Watched for {watched}: no gap.")
        return
    table = output.table(f"gaps in {watched}", "count", "total", "longest", no_wrap=True)
    for name, gap in stalls["classes"].items():
        table.add_row(
            GAPS[name], f"{gap['count']:,}", numbers.value(gap["total_s"], "s"), numbers.value(gap["longest_s"], "s")
        )
    console.print(table)


def _print_speeds(console: Console, disk: Mapping[str, Any]) -> None:
    console.print()
    speeds = disk["speeds"]
    blocks = sorted({cell["block_bytes"] for cell in speeds})
    table = output.table("bytes a second, median", *map(numbers.block, blocks), no_wrap=True)
    for what, row in _by_cell(speeds).items():
        table.add_row(_cell(*what), *(numbers.value(row[block], "bytes") for block in blocks))
    console.print(table)


def _by_cell(speeds: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, bool], dict[int, float]]:
    """Return target, operation and cache → the medians by block."""
    rows: dict[tuple[str, str, bool], dict[int, float]] = {}
    for cell in speeds:
        row = rows.setdefault((cell["target"], cell["operation"], cell["cached"]), {})
        row[cell["block_bytes"]] = cell["median"]
    return rows


def _cell(target: str, operation: str, cached: bool) -> str:
    where = "in the cache" if cached else ("to the disk" if operation == "write" else "from the disk")
    return f"{operation} {'' if target == 'file' else 'device '}{where}"


def _print_transfers(console: Console, network: Mapping[str, Any]) -> None:
    """Print a row for each direction and number of flows: means over the repeats."""
    console.print()
    for name, side in network["hosts"].items():
        console.print(Text(f"{name}: {_side(side)}"))
    times = "once" if network["repeats"] == 1 else f"{network['repeats']} times"
    console.print(
        f"TCP between this host and {network['to']}: transfers of {numbers.value(network['duration_s'], 's')}, {times} "
        f"each; {network['to'] if network['server'] == REMOTE else 'this host'} listened."
    )
    headings = ("data, flows", "goodput", "idle RTT", "loaded", "retransmitted", "limited by")
    table = output.table(*headings, no_wrap=True)
    for cell in network["cells"]:
        speed = output.estimate(cell["goodput_bps"], "bit/s")
        times_s = [numbers.value(cell[name]["mean"], "s") for name in ("rtt_idle_s", "rtt_loaded_s")]
        retransmitted = numbers.value(cell["retransmitted"]["mean"], "share")
        what = f"{cell['direction']}, {cell['flows']}" + (", file" if cell["medium"] == "file" else "")
        table.add_row(what, speed, *times_s, retransmitted, _limit(cell))
    console.print(table)


def _side(side: Mapping[str, Any]) -> str:
    """Return a host's settings that explain speeds without being a fault."""
    offloads = len(side["offloads"])
    parts = [
        f"Linux {side['kernel']}",
        side["sysctls"].get("ipv4.tcp_congestion_control"),
        f"{side['interface'] or 'an unknown interface'} of MTU {side['mtu_bytes'] or numbers.NOTHING}",
        f"{offloads} of its offloads on" if offloads else "its offloads off",
        f"qdisc {side['qdisc']}" if side["qdisc"] else None,
        None if side["root"] else "no root",
    ]
    return ", ".join(filter(None, parts)) + "."


def _limit(cell: Mapping[str, Any]) -> str:
    """Return the senders' most frequent limit, and its share of the time."""
    share, name = max((cell[name]["mean"] or 0.0, short) for name, short in LIMITS.items())
    return f"{name} {numbers.value(share, 'share', 2)}" if share else numbers.NOTHING
