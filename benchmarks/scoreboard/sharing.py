"""Accuracy of bottleneck sharing: a full link's queue with one flow, with captured and with uncaptured cross traffic.

    python benchmarks/scoreboard/sharing.py OUT [--cases N] [--first N] [--confusion]

Case *n* is drawn from the number *n* alone. A flow goes from `sender` to `receiver` over one bottleneck; beside it
there is nothing, or TCP flows of another host, with other congestion controls and round-trip times, for a part of the
time, or UDP at a constant rate. Each capture is read twice: as it is, and with the packets of the host `sender` only.
No analysis of TCP sees UDP. What is true `rounds.py` says: of round trips in which the window limits and the link is
full, a queue is the flow's own if nine tenths of what the link delivers meanwhile are; in those in which the link is
free, there is none. A round trip is right if it is called so; one of which the analysis says something else, as that
the application limits, is wrong. Even cases are those to tune on; odd ones are held out.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import rounds
import score
from cases import CONTROLS, MIDDLE, PACKET_BYTES

import ackclock as ac

#: Limits of a case: simulated time, and packets at the bottleneck.
LONGEST_S, MOST_PACKETS = 60.0, 20_000

#: The flow that is looked at comes first.
FIRST = "host 10.0.0.1"

#: The kinds of cross traffic.
CROSS_TRAFFIC = ("nothing", "tcp", "udp", "nothing", "tcp", "both")

#: Column → the owners that it counts.
COLUMNS = {"own": ("own",), "shared": ("shared",), "either": ("own", "shared"), "none": ("none",)}

OTHERS = ("cubic", "reno", "bbr", "bbr3")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A case."""

    number: int
    control: str
    cross_traffic: str
    rtt_s: float
    rate_bps: float
    text: str

    @property
    def half(self) -> str:
        """Return the half that it belongs to."""
        return "held out" if self.number % 2 else "tuned on"

    @property
    def views(self) -> dict[str, str]:
        """Return the captures that are analysed."""
        return {"all": "", "alone": FIRST} if self.cross_traffic in ("tcp", "both") else {"all": ""}


def drawn(number: int) -> Drawn:
    """Case *n*."""
    draw = random.Random(f"sharing {number}")
    half = number // 2  # both halves have all controls, and all that may be beside
    control, beside = CONTROLS[half % len(CONTROLS)], CROSS_TRAFFIC[half % len(CROSS_TRAFFIC)]
    rtt_s = math.exp(draw.uniform(math.log(0.01), math.log(0.2)))
    rate_bps = math.exp(draw.uniform(math.log(2e6), math.log(5e7)))
    duration_s = min(LONGEST_S, MOST_PACKETS * 8 * PACKET_BYTES / rate_bps)
    lines = [
        f'name = "Sharing, case {number}"',
        f'duration = "{duration_s:.2f}s"',
        f"seeds = [{number + 1}]",
        *_network(rtt_s, rate_bps, draw),
        *("[[flows]]", 'from = "sender"', 'to = "receiver"', f'congestion = "{control}"'),
        *(_tcp(duration_s, draw) if beside in ("tcp", "both") else ()),
        *(_udp(rate_bps, duration_s, draw) if beside in ("udp", "both") else ()),
        "[record]",
        'interval = "10ms"',
        f'pcap = ["senders", "receivers", "{MIDDLE}"]',
        "",
    ]
    return Drawn(number, control, beside, rtt_s, rate_bps, "\n".join(lines))


def _network(rtt_s: float, rate_bps: float, draw: random.Random) -> list[str]:
    share, other_s = draw.uniform(0.1, 0.9), rtt_s * draw.uniform(0.0, 1.5)
    near_ms, far_ms, other_ms = 500 * share * rtt_s, 500 * (1 - share) * rtt_s, 500 * share * other_s
    limit_p = max(10, round(rate_bps * rtt_s / (8 * PACKET_BYTES) * math.exp(draw.uniform(math.log(0.5), math.log(2)))))
    fast, plenty = f'rate = "{rate_bps / 100:.0f}kbit"', 'queue = { discipline = "pfifo", limit = "10000p" }'
    slow = f'rate = "{rate_bps / 1e3:.0f}kbit"'
    queue = f'queue = {{ discipline = "pfifo", limit = "{limit_p}p" }}'
    hosts = ", ".join(f'{{ name = "{name}", host = true }}' for name in ("sender", "other", "receiver"))
    return [
        "[network]",
        'topology = "graph"',
        f'nodes = [{hosts}, {{ name = "near" }}, {{ name = "far" }}]',
        "links = [",
        f'    {{ from = "sender", to = "near", {fast}, delay = "{near_ms:.4f}ms", {plenty} }},',
        f'    {{ from = "other", to = "near", {fast}, delay = "{other_ms:.4f}ms", {plenty} }},',
        f'    {{ from = "near", to = "far", {slow}, delay = "1us", {queue}, one_way = true }},',
        f'    {{ from = "far", to = "near", {fast}, delay = "1us", {plenty}, one_way = true }},',
        f'    {{ from = "far", to = "receiver", {fast}, delay = "{far_ms:.4f}ms", {plenty} }},',
        "]",
    ]


def _tcp(duration_s: float, draw: random.Random) -> list[str]:
    streams, begin = draw.choice([1, 1, 2, 4, 8]), draw.choice([0.0, 0.0, draw.uniform(0.1, 0.5)])
    found = ["[[flows]]", 'from = "other"', 'to = "receiver"', f"streams = {streams}"]
    found += [
        f'congestion = "{draw.choice(OTHERS)}"',
        f'start = {{ at = "{begin * duration_s:.2f}s", jitter = "300ms" }}',
    ]
    return [*found, *([f'stop = "{draw.uniform(0.6, 0.9) * duration_s:.2f}s"'] if draw.random() < 0.5 else [])]


def _udp(rate_bps: float, duration_s: float, draw: random.Random) -> list[str]:
    begin_s = draw.choice([0.0, draw.uniform(0.1, 0.5)]) * duration_s
    per_s = draw.uniform(0.15, 0.7) * rate_bps / (8 * PACKET_BYTES)
    found = ["[[traffic]]", 'kind = "udp"', 'from = "other"', 'to = "receiver"']
    return [*found, f'packet = "{PACKET_BYTES - 28}B"', f'rate = "{per_s:.2f}/s"', f'start = "{begin_s:.2f}s"']


def made(case: Drawn, out: Path) -> Path:
    """Its result; runs it if it is not there."""
    place = out / f"case-{case.number:04}"
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=out, prefix=".making-") as making:
            captures = Path(making) / "captures"
            ac.run(ac.loads(case.text).plan(), captures=captures, jobs=1).write(place, captures)
    return place


def judged(case: Drawn, place: Path) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Vantage, view and round trips of each capture: those of the first flow, or of all that are seen."""
    data = ac.Dataset.read(place)
    truth = data.transmissions.filter((pl.col("end") == "sender") & (pl.col("payload_bytes") > 0))
    for path in sorted((place / "captures").iterdir()):
        for view, expression in case.views.items():
            tables, begin_s = score.read(path, expression)
            rows = rounds.sampled_rounds(tables["flow_samples"], rounds.flows(tables["flows"]), begin_s)
            rows = rounds.at_sender(rows, score.passed(tables, truth, begin_s))
            rows = rounds.limits(rows, truth).filter(pl.col("true") == "window")
            yield path.stem.split("-", 2)[2], view, rounds.queues(rows, data, score.BOTTLENECK)


def main() -> None:
    """Prints shares of what is right, for each vantage, view and half."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", type=int, default=120, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N")
    parser.add_argument("--confusion", action="store_true", help="a line for each case of what was tuned on")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    counts: dict[tuple[str, str, str], Counter[tuple[str, str]]] = {}
    for number in range(given.first, given.first + given.cases):
        case = drawn(number)
        for vantage, view, found in judged(case, made(case, given.out)):
            told = Counter(zip(found["queue"], found["said"], strict=True))
            counts.setdefault((case.half, view, vantage), Counter()).update(told)
            if given.confusion and not number % 2:
                counted = dict(told.most_common())
                print(f"{number:4} {case.control:10} {case.cross_traffic:8} {view:6} {vantage:14} {counted}")
    print(f"{'':10}{'capture of':26}" + "".join(f"{name:>11}{'right':>7}" for name in COLUMNS))
    for (half, view, vantage), told in sorted(counts.items()):
        print(f"{half:9} {_view(view):10} {vantage:15}{_line(told)}")


def _view(view: str) -> str:
    return {"all": "all hosts", "alone": "one host"}[view]


def _line(told: Counter[tuple[str, str]]) -> str:
    pairs = []
    for queues in COLUMNS.values():
        count = sum(count for (true, _), count in told.items() if true in queues)
        pairs.append((count, sum(told[queue, rounds.QUEUES[queue]] for queue in queues)))
    return "".join(f"{count:11}{right / max(1, count):7.3f}" for count, right in pairs)


if __name__ == "__main__":
    main()
