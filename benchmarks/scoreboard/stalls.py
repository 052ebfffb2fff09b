"""Accuracy of stall classification: causes imposed on captures of 1 to 300 flows, compared with the analysis.

    python benchmarks/scoreboard/stalls.py OUT [--cases N] [--first N] [--json]

Case *n* is drawn from the number *n* alone. Its flows have always more to send, so that a silence that nobody imposed
is the transport's. `OUT/case-0000` keeps the run's captures; from them one capture is made for each cause and place
where that can be seen (`ackclock.reproductions.impose`), and two runs more have causes of their own: a link that fails,
and applications that write slowly. A silence is right if its class is that of the cause (each of the transport's own
classes is), and one that is not found is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import ackclock as ac
from ackclock.capture import read as read_capture
from ackclock.reproductions import impose, pcap
from ackclock.reproductions.imposed import CLASSES, NOTHING, Windows, judged, resting
from ackclock.reproductions.pcap import Record

FLOWS = (1, 1, 2, 3, 5, 10, 30, 100, 300)
CONTROLS = ("cubic", "reno", "bbr", "bbr3", "vegas", "bic")

#: When the run's captures end, and when what is imposed begins.
DURATION_S, EARLIEST_S, LATEST_S = 5.0, 2.0, 3.5

#: A link fails for so long in the runs with a cause of their own.
OUTAGE_S = (0.1, 2.0)

#: The minimum duration of a capture after it lost packets.
MIN_CAPTURED_NS = 400_000_000


@dataclass(frozen=True, slots=True)
class Drawn:
    """A case."""

    number: int
    flows: int
    control: str
    rate_bps: float
    rtt_s: float
    begin_s: float
    long_s: float

    @property
    def until_s(self) -> float:
        """When the silence ends."""
        return self.begin_s + self.long_s


def drawn(number: int) -> Drawn:
    """Case *n*. Silences are longer than four round trips with a full queue: others are none."""
    draw = random.Random(f"silences {number}")
    flows = FLOWS[number % len(FLOWS)]
    rtt_s = math.exp(draw.uniform(math.log(2e-3), math.log(0.1)))
    return Drawn(
        number,
        flows,
        draw.choice(CONTROLS),
        1e6 * max(draw.uniform(2, 20), 0.5 * flows),
        rtt_s,
        draw.uniform(EARLIEST_S, LATEST_S),
        max(draw.uniform(0.3, 2.5), 14 * rtt_s),
    )


def text(case: Drawn, *, more: str = "", flow: str = "") -> str:
    """Its scenario."""
    limit_p = max(10, 2 * case.flows, round(0.7 * case.rate_bps * case.rtt_s / 12_000))
    return f"""\
name = "Silences, case {case.number}"
duration = "{DURATION_S}s"
seeds = [{case.number + 1}]
[network]
topology = "dumbbell"
rate = "{case.rate_bps / 1e3:.0f}kbit"
rtt = "{1e3 * case.rtt_s:.2f}ms"
queue = {{ discipline = "pfifo", limit = "{limit_p}p" }}
{more}
[[flows]]
count = {case.flows}
congestion = "{case.control}"
start = {{ jitter = "100ms" }}
{flow}
[record]
pcap = ["senders", "receivers"]
"""


def made(place: Path, scenario: str) -> tuple[Path, Path]:
    """A run's captures at the senders and at the receivers."""
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".making-") as making:
            ac.run(ac.loads(scenario).plan(), captures=Path(making) / "captures", jobs=1)
            (Path(making) / "captures").rename(place)
    at = {path.stem.rsplit("-", 1)[1]: path for path in place.iterdir()}
    return at["senders"], at["receivers"]


def imposed(case: Drawn, out: Path) -> Iterator[tuple[str, str, Iterable[Record], Windows]]:
    """The case's captures with one cause each: cause, vantage, packets and windows."""
    senders, receivers = (pcap.read(path) for path in made(out / f"case-{case.number:04}", text(case)))
    at_ns, by_ns = round(1e9 * case.begin_s), round(1e9 * case.long_s)
    window = (case.begin_s, case.until_s)
    idle = resting(senders, at_ns)
    every = {flow: None if flow in idle else window for flow in range(case.flows)}
    yield "host", "senders", impose.host(senders, at_ns, by_ns), every
    yield "host", "senders", impose.host(senders, at_ns, by_ns, timers=True), every
    yield "machine", "senders", impose.host(senders, at_ns, by_ns, stood=True), every
    by_ns = min(by_ns, round(1e9 * (DURATION_S - case.begin_s)) - MIN_CAPTURED_NS)
    yield "capture", "senders", impose.lost(senders, at_ns, by_ns), every
    yield "capture", "receivers", impose.lost(receivers, at_ns, by_ns), every
    for place, records in (("senders", senders), ("receivers", receivers)):
        done = sorted(impose.Cut(records, at_ns).done(records) - idle)
        some = set(done[:: random.Random(case.number).choice([1, 2, 3])])
        few = {flow: window if flow in some else every[flow] and NOTHING for flow in every}
        yield "application", place, impose.application(records, at_ns, by_ns, some), few
        yield "receiver", place, impose.receiver(records, at_ns, by_ns, some, probed=case.number % 2 == 0), few


def of_runs(case: Drawn, out: Path) -> Iterator[tuple[str, str, Path]]:
    """Captures of runs whose every silence has one cause."""
    outage_s = min(random.Random(case.number).uniform(*OUTAGE_S), DURATION_S - case.begin_s - 1e-9 * MIN_CAPTURED_NS)
    fails = f"""\
[[network.changes]]
at = "{case.begin_s:.3f}s"
link = "bottleneck"
up = false
[[network.changes]]
at = "{case.begin_s + outage_s:.3f}s"
link = "bottleneck"
up = true
"""
    places = ("senders", "receivers")
    for place, path in zip(places, made(out / f"fails-{case.number:04}", text(case, more=fails)), strict=True):
        yield "transport", place, path
    slowly = f'application_rate = "{12 / max(0.3, 6 * case.rtt_s):.1f}kbit"'
    for place, path in zip(places, made(out / f"slow-{case.number:04}", text(case, flow=slowly)), strict=True):
        yield "application", place, path


def main() -> None:
    """Prints, for each cause and vantage, how many silences there were and how many are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", type=int, default=27, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N")
    parser.add_argument("--json", action="store_true", help="print a line for each wrong silence too")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    counts: Counter[tuple[str, str, str]] = Counter()
    for number in range(given.first, given.first + given.cases):
        for cause, place, classes in scored(drawn(number), given.out):
            counts.update((true, place, told) for true, told in classes)
            wrong = Counter((true, told) for true, told in classes if told not in CLASSES[true])
            if given.json and wrong:
                rows = [[*pair, count] for pair, count in wrong.items()]
                print(json.dumps({"case": number, "imposed": cause, "at": place, "wrong": rows}))
    table(counts)


def scored(case: Drawn, out: Path) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Each capture of a case: what was imposed, where it was captured, and causes with classes."""
    altered = out / f"altered-{case.number:04}.pcap"
    for cause, place, records, windows in imposed(case, out):
        kept = impose.in_order(records)
        pcap.write(altered, kept)
        yield cause, place, _classes(altered, kept[0].time_ns, windows, cause, "transport")
    altered.unlink()
    for cause, place, path in of_runs(case, out):
        yield cause, place, _classes(path, pcap.read(path)[0].time_ns, {}, cause, cause)


def _classes(path: Path, origin_ns: int, windows: Windows, cause: str, otherwise: str) -> list[tuple[str, str]]:
    return list(judged(read_capture([path]).analysis, {cause: windows}, otherwise, 1e-9 * origin_ns))


def table(counts: Counter[tuple[str, str, str]]) -> None:
    """Prints the counts and the share that is right."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    for (true, place, told), count in counts.items():
        rows.setdefault((true, place), Counter())[told or "not found"] += count
    for (true, place), found in sorted(rows.items()):
        share = 100 * right(true, found) / found.total()
        print(f"{true:12} {place:10} {found.total():7} {share:7.2f} %  {dict(found.most_common(5))}")
    every = sum(found.total() for found in rows.values())
    share = 100 * sum(right(true, found) for (true, _), found in rows.items()) / every
    print(f"{'all':23} {every:7} {share:7.2f} %")


def right(true: str, found: Counter[str]) -> int:
    """Return the number of stalls of a cause that are in one of its classes."""
    return sum(found[name] for name in CLASSES[true])


if __name__ == "__main__":
    main()
