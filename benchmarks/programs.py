"""Real programs in `ackclock shell` next to the TCP of a guest kernel and of the packet engine, in twelve scenarios.

    .venv/bin/python benchmarks/programs.py [--seconds 15] [--only NAME…] [--write]

Three programs, each in its own run of each scenario:

- iperf3, a download for `--seconds`: goodput, and the mean queueing delay of the packets at the bottleneck;
- curl, a download of 3 MB from a server in Python: the time that curl reports;
- Chromium under Playwright, a page with 60 objects of 20 kB, six connections at a time, each object on a new one
  (HTTP/1.0): the browser's own time from the start of the navigation to the end of `load`.

The engines run the same scenario with the transfers that such a program asks for, and CUBIC as the kernel here: `linux`
is a guest kernel in virtual time, `packet` the simulator's TCP. Medians of `--repeats` runs, in the engines of as many
seeds. `--write` puts the tables into `docs/concepts/programs.md` (with `--only` their rows) and checks what the page
states of them. Needs iperf3, curl and Chromium (Debian's packages; `tools/need-debian.sh`), and a guest kernel
(`make kernel`).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import ackclock as ac

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "concepts" / "programs.md"
NEED = ("iperf3=iperf3", "curl=curl", "chromium=chromium")

#: Bytes that curl downloads, and objects of the page with their bytes.
FILE_BYTES, OBJECTS, OBJECT_BYTES = 3_000_000, 60, 20_000

#: The engines' transfers begin after as long as a program takes to start, so a trace is at the same place.
START_S = 1.0

#: Values of one program in one scenario, by name.
Values: TypeAlias = dict[str, float]


def network(rate: Any, rtt: str, queue: str = "pfifo", limit: str = "1bdp", **more: Any) -> dict[str, Any]:
    """A dumbbell; an AQM has its own limit."""
    parameters = {"limit": limit} if queue == "pfifo" else {}
    return {
        "topology": "dumbbell",
        "rate": rate,
        "rtt": rtt,
        "queue": {"discipline": queue, **parameters},
        **more,
    }


SCENARIOS: dict[str, dict[str, Any]] = {
    "2 Mb/s, 60 ms": network("2Mbit", "60ms", limit="50p"),
    "10 Mb/s, 40 ms": network("10Mbit", "40ms"),
    "10 Mb/s, 40 ms, 5 BDP": network("10Mbit", "40ms", limit="5bdp"),
    "10 Mb/s, 100 ms": network("10Mbit", "100ms"),
    "50 Mb/s, 20 ms": network("50Mbit", "20ms"),
    "20 Mb/s, 40 ms, CoDel": network("20Mbit", "40ms", "codel"),
    "20 Mb/s, 40 ms, FQ-CoDel": network("20Mbit", "40ms", "fq_codel"),
    "20 Mb/s, 40 ms, PIE": network("20Mbit", "40ms", "pie"),
    "20 Mb/s, 40 ms, 1 % loss": network("20Mbit", "40ms", limit="100p", loss={"probability": 0.01}),
    # Packets come at the pace of their sources' links, so those that wait for the link are no burst for the policer.
    "20 Mb/s, 40 ms, policer": network("100Mbit", "40ms", "tbf", rate_of_tbf="20Mbit", access_rate="100Mbit"),
    "20 and 1 Mb/s, 40 ms": network(
        "20Mbit", "40ms", reverse={"rate": "1Mbit", "queue": {"discipline": "pfifo", "limit": "100p"}}
    ),
    "changing satellites, 40 ms": network({"trace": "satellite"}, "40ms"),
}

#: Servers of curl and the browser: a file, and a page; their connections use CUBIC as the engines do.
SERVER = f"""
import http.server, socket
PAGE = "<html><body>" + "".join(f'<img src="/object/{{n}}">' for n in range({OBJECTS})) + "</body></html>"
PAGE += " " * ({OBJECT_BYTES} - len(PAGE))
CONTENTS = {{"/": PAGE.encode(), "/file": bytes({FILE_BYTES})}}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        content = CONTENTS.get(self.path, bytes({OBJECT_BYTES}))
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if self.path == "/" else "image/png")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        super().server_bind()
    def handle_error(self, *_): pass
Server(("10.77.0.1", 80), Handler).serve_forever()
"""

#: The server of iperf3, which chooses its algorithm when a connection is established. One that has begun with BBR keeps
#: BBR's pacing, and leaves HyStart later, so connections begin with Reno.
UNPACED = "sysctl -qw net.ipv4.tcp_congestion_control=reno; exec iperf3 -s -1"

#: The browser: prints the time from the start of the navigation to the end of `load`, in seconds.
BROWSER = """
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    page = browser.new_page()
    page.goto("http://10.77.0.1/", wait_until="load", timeout=120000)
    page.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
    print(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"))
    browser.close()
"""


def scenario(name: str, seconds: float, **tables: Any) -> dict[str, Any]:
    """A scenario as a mapping."""
    content = {"name": name, "duration": f"{seconds}s", "network": dict(SCENARIOS[name]), **tables}
    if rate := content["network"].pop("rate_of_tbf", None):  # a bucket that drops what exceeds it
        content["network"]["queue"] |= {"rate": rate, "burst": "50KB", "limit": "3028B", "per_flow": False}
    if "trace" in content["network"]["rate"]:
        content["traces"] = {"satellite": (ROOT / "scenarios/traces/satellite.csv").read_text()}
    return content


def queue_delay_s(data: ac.Dataset) -> float:
    """The mean sojourn time of the packets at the bottleneck."""
    (mean_s,) = data.links.filter(data.links["bottleneck"])["sojourn_mean_s"].to_list()
    return float(mean_s)


# ---- the programs ----


def in_shell(name: str, server: list[str], client: list[str]) -> tuple[str, ac.Dataset]:
    """Run a client with its server across a scenario; return what it prints, and the result."""
    with ac.shell(scenario(name, 1)) as net:
        net.serve([("peer", server)])
        done = net.run(client, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{name}: {client[0]}: {done.stderr or done.stdout}")
    return done.stdout, net.dataset()


def late_s(data: ac.Dataset) -> float:
    """The lateness that 99 % of the packets did not exceed."""
    return float(data.manifest["shell"]["lateness"]["p99_s"])


def iperf3(name: str, seconds: float) -> Values:
    """A download by iperf3."""
    words = ["iperf3", "-c", "10.77.0.1", "-R", "-J", "-C", "cubic", "-t", f"{seconds:g}"]
    printed, data = in_shell(name, ["sh", "-c", UNPACED], words)
    received = json.loads(printed)["end"]["sum_received"]["bits_per_second"]
    return {"goodput": received / 1e6, "delay": 1e3 * queue_delay_s(data), "late": 1e3 * late_s(data)}


def curl(name: str, _: float) -> Values:
    """A download by curl."""
    words = ["curl", "-so", "/dev/null", "-w", "%{time_total}", "http://10.77.0.1/file"]
    printed, data = in_shell(name, [sys.executable, "-c", SERVER], words)
    return {"time": float(printed), "late": 1e3 * late_s(data)}


def chromium(name: str, _: float) -> Values:
    """A page in a browser."""
    printed, data = in_shell(name, [sys.executable, "-c", SERVER], [sys.executable, "-c", BROWSER])
    return {"time": float(printed), "late": 1e3 * late_s(data)}


# ---- the same by the engines ----


def iperf3_engine(name: str, seconds: float, engine: str, seed: int) -> Values:
    """A long flow."""
    flow = {"congestion": "cubic", "request": "37B", "start": {"at": f"{START_S}s"}}
    data = ac.run(scenario(name, START_S + seconds, flows=[flow]), engine=engine, seeds=[seed])
    return {"goodput": 8e-6 * data.flows["delivered_bytes"][0] / seconds, "delay": 1e3 * queue_delay_s(data)}


def curl_engine(name: str, _: float, engine: str, seed: int) -> Values:
    """A flow of the file's size."""
    flow = {"congestion": "cubic", "request": "80B", "start": {"at": f"{START_S}s"}, "size": f"{FILE_BYTES + 170}B"}
    data = ac.run(scenario(name, 120, flows=[flow]), engine=engine, seeds=[seed])
    return {"time": float(data.flows["fct_s"][0])}


def chromium_engine(name: str, _: float, engine: str, seed: int) -> Values:
    """One page."""
    size = f"{OBJECT_BYTES + 170}B"
    page = {
        "kind": "web",
        "users": 1,
        "start": f"{START_S}s",
        "main": size,
        "objects": OBJECTS,
        "size": size,
        "parallel": 6,
        "think": "1h",
        "request": "400B",
        "congestion": "cubic",
    }
    data = ac.run(scenario(name, 120, traffic=[page]), engine=engine, seeds=[seed])
    return {"time": max(data.flows["end_s"].to_list()) - min(data.flows["start_s"].to_list())}


Program: TypeAlias = Callable[[str, float], Values]
InEngine: TypeAlias = Callable[[str, float, str, int], Values]
PROGRAMS: dict[str, tuple[Program, InEngine]] = {
    "iperf3": (iperf3, iperf3_engine),
    "curl": (curl, curl_engine),
    "Chromium": (chromium, chromium_engine),
}


def median(runs: list[Values]) -> Values:
    """The median of each value."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def measured(program: str, name: str, arguments: argparse.Namespace) -> dict[str, Values]:
    """The medians of a program in a scenario, by where its TCP runs."""
    real, of_engine = PROGRAMS[program]
    times = range(1, arguments.repeats + 1)
    found = {"shell": median([real(name, arguments.seconds) for _ in times])}
    for engine in ("linux", "packet"):
        try:
            found[engine] = median([of_engine(name, arguments.seconds, engine, seed) for seed in times])
        except ac.UnsupportedError as error:
            print(f"{name}: {engine}: {error}", file=sys.stderr)
    return found


def rows(program: str, results: Mapping[str, Mapping[str, Values]]) -> Iterator[str]:
    """The lines of a program's table."""
    columns = [("goodput", "Mb/s"), ("delay", "ms")] if program == "iperf3" else [("time", "s")]
    heads = [f"{column}, {where}, {unit}" for column, unit in columns for where in ("shell", "linux", "packet")]
    yield f"| scenario | {' | '.join(heads)} | late, 99 %, ms |"
    yield f"|---|{'---|' * (len(heads) + 1)}"
    for name, found in results.items():
        cells = [
            f"{found[where][column]:.3g}" if where in found else "–"
            for column, _ in columns
            for where in ("shell", "linux", "packet")
        ]
        yield f"| {name} | {' | '.join(cells)} | {found['shell']['late']:.2g} |"


def write(tables: Mapping[str, str], about: str) -> None:
    """Put the tables' rows into the page, and check its sentences."""
    text = PAGE.read_text(encoding="utf-8")
    for program, table in tables.items():
        text = _between(text, program, lambda old, new=table: "\n".join(_merged(old, new)))  # type: ignore[misc]
    if all(table.count("\n") > len(SCENARIOS) for table in tables.values()):
        text = _between(text, "machine", lambda _: about)
    PAGE.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(ROOT / "docs"))
    claims = importlib.import_module("claims")
    if untrue := claims.untrue(text):
        sys.exit("not true of the tables: " + "; ".join(untrue))


def _between(text: str, name: str, change: Callable[[str], str]) -> str:
    """Return a page with the lines between the marks of a name changed."""
    before, mark, rest = text.partition(f"<!-- {name} -->\n")
    old, end, after = rest.partition("<!-- end -->")
    return f"{before}{mark}\n{change(old.strip())}\n\n{end}{after}"


def _merged(old: str, new: str) -> Iterator[str]:
    """Yield the lines of a table: the new rows, and the old ones of other scenarios."""
    lines = {line.split(" | ")[0]: line for table in (old, new) for line in table.splitlines()}
    yield from new.splitlines()[:2]
    yield from (lines[f"| {name}"] for name in SCENARIOS if f"| {name}" in lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(SCENARIOS), metavar="NAME", help="scenarios")
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS), choices=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--write", action="store_true", help="put the tables into the page, and check it")
    arguments = parser.parse_args()
    subprocess.run([ROOT / "tools/need-debian.sh", *NEED], check=True)
    load = os.getloadavg()[0]
    tables = {}
    for program in arguments.programs:
        results = {name: measured(program, name, arguments) for name in arguments.only}
        tables[program] = "\n".join(rows(program, results))
        print(f"{program}\n\n{tables[program]}\n", flush=True)
    about = f"{os.cpu_count()} processors, load {load:.1f} to {os.getloadavg()[0]:.1f}, Linux {os.uname().release}"
    about += f"; medians of {arguments.repeats} runs."
    print(about)
    if arguments.write:
        write(tables, about)


if __name__ == "__main__":
    main()
