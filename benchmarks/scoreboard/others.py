"""The analysis beside tcptrace and tshark, where they answer the same question: what they say, and what it costs.

    python benchmarks/scoreboard/others.py CASES… [--speed CAPTURE…] [--alone CAPTURE…]

`CASES` are folders that `generate.py` made. Of each flow of the captures at the senders and in the middle it is asked
how many of its data packets are repairs, which of these were needless, which followed duplicate acknowledgements and
a timeout, and whether packets are called reordered where none is. Reported and true counts are compared per flow:
the differences' sum over the true number of repairs. `--speed` takes other captures, lets each program read each three
times in turn, and prints packets a CPU second of the whole process, the best of the three, and its peak memory. tshark,
which takes a hundred times as long, reads the first packets only. `--alone` does so without the other programs:
tcptrace takes more than linear time for what is never acknowledged.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import TypeAlias

import polars as pl
import truth

from ackclock import _core

#: The vantage points: at the senders, and on a link before which nothing is reordered either.
VANTAGES = ("senders", "link-near-far")

#: The senders' addresses begin here: flow n has this one and n more.
FIRST_ADDRESS = int(IPv4Address("10.0.0.1"))

#: The counts that are compared for each flow.
QUESTIONS = ("repairs", "reordered", "needless", "fast", "after timeouts")

#: Causes in the ground truth → their names here.
CAUSES = {"fast_retransmit": "fast", "after_timeout": "after timeouts"}

#: tshark's fields; where several are set the first counts.
LABELS = {
    "tcp.analysis.spurious_retransmission": "needless",
    "tcp.analysis.fast_retransmission": "fast",
    "tcp.analysis.out_of_order": "reordered",
    "tcp.analysis.retransmission": "after timeouts",
}

#: The number of times that a speed is measured.
REPEATS = 3

#: Packets that tshark reads then.
TSHARK_PACKETS = 300_000

#: Flow → question → count.
Counts: TypeAlias = dict[int, Counter[str]]


def main() -> None:
    """Prints a table for each vantage, and speeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, nargs="*")
    parser.add_argument("--speed", type=Path, nargs="+", default=[])
    parser.add_argument("--alone", type=Path, nargs="+", default=[])
    given = parser.parse_args()
    needed = ("tcptrace", "tshark") if given.cases or given.speed else ()
    if missing := [name for name in needed if shutil.which(name) is None]:
        sys.exit(f"{' and '.join(missing)} not found; expected the Debian packages of these names")
    errors = {vantage: _errors(given.cases, vantage) for vantage in VANTAGES} if given.cases else {}
    for vantage, found in errors.items():
        print(f"{vantage:16}" + "".join(f"{name:>10}" for name in found))
        for question in QUESTIONS:
            values = (found[name].get(question) for name in found)
            print(f"{question:16}" + "".join(f"{'' if value is None else f'{value:.4f}':>10}" for value in values))
    for path in given.speed:
        _print_speeds(path, *TOOLS)
    for path in given.alone:
        _print_speeds(path, "ackclock")


def _errors(cases: Sequence[Path], vantage: str) -> dict[str, dict[str, float]]:
    """Return the error of each program and count, summed over the flows, relative to the true retransmissions."""
    wrong: dict[str, Counter[str]] = {name: Counter() for name in TOOLS}
    repairs = 0
    for case in cases:
        path = next(path for path in (case / "captures").iterdir() if path.stem.endswith(vantage))
        true = _true(case, path)
        repairs += sum(counts["repairs"] for counts in true.values())
        for name, (tool, questions) in TOOLS.items():
            told = tool(path)
            for flow, counts in true.items():
                wrong[name].update({what: abs(told[flow][what] - counts[what]) for what in questions})
    return {name: {what: wrong[name][what] / max(1, repairs) for what in TOOLS[name][1]} for name in TOOLS}


def _true(case: Path, path: Path) -> Counts:
    rows = truth.read(case, path).filter((pl.col("end") == "sender") & (pl.col("payload_bytes") > 0))
    rows = rows.filter(pl.col("packet").is_not_null() & (pl.col("copy") > 0))
    found: Counts = {flow: Counter() for flow in range(256)}
    for flow, cause, needless in rows.select("flow", pl.col("cause").cast(pl.String), "spurious").iter_rows():
        found[flow].update(["repairs", "needless" if needless else CAUSES.get(cause, cause)])
    return found


def _ackclock(path: Path) -> Counts:
    capture = _core.Capture([path], interval_s=1.0)
    while capture.advance(10**9):
        pass
    flows = dict(capture.drain()["flows"])
    names = {"needless": "spurious", "fast": "fast", "after timeouts": "timeout"}
    columns = {question: flows[f"retransmissions_{name}"] for question, name in names.items()}
    columns |= {"repairs": flows["retransmissions"], "reordered": flows["reordered"]}
    found: Counts = {flow: Counter() for flow in range(256)}
    ends = zip(flows["flow"], flows["client"], flows["server"], strict=True)
    for row, (number, client, server) in enumerate(ends):
        flow = _flow(str(server if number % 2 else client))
        if flow is not None:
            found[flow].update({question: int(column[row]) for question, column in columns.items()})
    return found


def _tcptrace(path: Path) -> Counts:
    lines = (line for line in _printed(*TCPTRACE, path).splitlines() if line.strip() and not line.startswith("#"))
    found: Counts = {flow: Counter() for flow in range(256)}
    for row in csv.DictReader(lines, skipinitialspace=True):
        for host, way in (("host_a", "a2b"), ("host_b", "b2a")):
            if (flow := _flow(row[host])) is not None:
                repairs, reordered = (int(row[f"{name}_{way}"]) for name in ("rexmt_data_pkts", "outoforder_pkts"))
                found[flow].update({"repairs": repairs, "reordered": reordered})
    return found


def _tshark(path: Path) -> Counts:
    fields = ["ip.src", "tcp.len", *LABELS]
    printed = _printed(*TSHARK, *(f"-e{field}" for field in fields), "-r", path)
    found: Counts = {flow: Counter() for flow in range(256)}
    for line in printed.splitlines():
        source, payload, *labels = line.split("\t")
        said = [label for label, flag in zip(LABELS.values(), labels, strict=True) if flag]
        flow = _flow(source)
        if flow is not None and said and payload != "0":
            found[flow].update([said[0], *(["repairs"] if said[0] != "reordered" else [])])
    return found


ACKCLOCK = (sys.executable, "-m", "ackclock", "capture")
TCPTRACE = ("tcptrace", "-lnr", "--csv")
TSHARK = ("tshark", "-n", "-Tfields")

#: Each program: how to ask it, and what it answers.
TOOLS: dict[str, tuple[Callable[[Path], Counts], Sequence[str]]] = {
    "ackclock": (_ackclock, QUESTIONS),
    "tcptrace": (_tcptrace, QUESTIONS[:2]),
    "tshark": (_tshark, QUESTIONS),
}


def _flow(address: str) -> int | None:
    number = int(IPv4Address(address)) - FIRST_ADDRESS
    return number if 0 <= number < 256 else None


def _printed(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(f"{command[0]}: {done.stderr.strip() or 'printed nothing'}")
    return done.stdout


def _print_speeds(path: Path, *tools: str) -> None:
    """Packets a CPU second of whole processes, and their peak memory."""
    every = json.loads(_printed(*ACKCLOCK, path, "--json"))["packets"]
    some = min(every, TSHARK_PACKETS)
    commands: dict[str, tuple[int, tuple[str | Path, ...]]] = {
        "ackclock": (every, (*ACKCLOCK, path, "--json")),
        "tcptrace": (every, (*TCPTRACE, path)),
        "tshark": (some, (*TSHARK, f"-c{some}", "-eip.src", *(f"-e{field}" for field in LABELS), "-r", path)),
    }
    print(f"{path.stem}, {every / 1e6:.1f} million packets")
    for name, (packets, command) in ((name, commands[name]) for name in tools):
        cpu_s, peak_mib = min(_cost(command) for _ in range(REPEATS))
        print(f"{name:16}{packets / cpu_s / 1e6:8.3f} million packets a CPU second, {peak_mib:4.0f} MiB")


def _cost(command: Sequence[str | Path]) -> tuple[float, float]:
    """CPU seconds, and MiB at the peak."""
    with Path(os.devnull).open("w") as nothing:
        process = subprocess.Popen(command, stdout=nothing, stderr=nothing)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


if __name__ == "__main__":
    main()
