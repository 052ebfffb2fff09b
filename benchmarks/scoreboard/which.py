"""Accuracy of identifying the congestion control algorithm of a captured flow.

    python benchmarks/scoreboard/which.py [--cases N] [--first N] [--since N] [--jobs N] [--csv FOLDER]
                                          [--linux FOLDER] [--json]

First of flows of our own engine: case *n* is drawn from the number *n* alone, with the controls in turn (those that the
engine got later have `--since` cases each), and counts the flows whose window came down three times or more. Where
several controls do the same over a flow, one is said and the others are told beside it: there the flow's is right too,
and counted as "the same". `--csv` gives transfers of other kernels besides: a folder of folders with `CONTROL.csv.gz`
in them (see `tshark.py`); of a control that ackclock does not have, "unknown" is right. `--linux` runs each control of
the guest kernel over slow links with delivery opportunities, as `CONDITIONS` has them, and keeps the captures in that
folder, half a gigabyte; it takes 20 minutes. Each is also read without its options, as a table of tshark has it.

For each kind of flow a line gives the reliability of the probabilities: of names with a probability in each tenth how
many there are, their mean probability, and the share that is right.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
import tshark
from cases import CONTROLS, control, numbers

import ackclock as ac
from ackclock import _core
from ackclock.capture import congestion
from ackclock.capture import read as read_capture
from ackclock.engines.linux.kernel import cache

#: All that the packet engine has.
OURS = frozenset(_core.CONGESTION_CONTROLS)

#: Times that a flow's window must have come down.
MIN_EPOCHS = 3

#: Limits of a case: simulated time, and packets at the bottleneck.
LONGEST_S, MOST_PACKETS = 60.0, 60_000

#: The vantage points of captures.
VANTAGES = ("senders", "receivers")

#: Segments. With fewer several controls are Reno: Compound and HighSpeed below 38, Illinois below 15, BIC below 14.
WIDE = 40

#: By how much windows may be off that are the same: half a segment of fifty.
JUST_THAT = 0.01

#: Bytes of a packet.
PACKET_BYTES = 1500

#: Links of the guest kernel's transfers: delay of each direction in ms, rate in kbit/s.
CONDITIONS = ((15, 200), (15, 400), (25, 800), (35, 100), (60, 300))

#: Bytes of a full segment of those, the least that Linux's route metric allows, and of its packet.
SMALL_MSS, SMALL_BYTES = 76, 128

#: Bytes that pass at an opportunity of mahimahi's. A queue holds as many packets as others of 100 bytes fill in the
#: delays and 8 ms, as the queues of the transfers in CSV do, by what of a burst is lost.
OPPORTUNITY_BYTES, QUEUED_BYTES, MORE_QUEUE_MS = 1500, 100, 8


@dataclass(frozen=True, slots=True)
class Named:
    """A flow: the control that it used, the one that was named, and where it is from."""

    true: str
    identified: str
    source: str
    ranking: congestion.Ranking
    vantage: str = "senders"
    window: float = 0.0

    @property
    def first(self) -> bool:
        """Return True if the name is the flow's, or "unknown" where no name is right."""
        return self.identified == (self.true if self.true in OURS else congestion.UNKNOWN)

    @property
    def is_same(self) -> bool:
        """Return True if the flow's CCA behaved like the one identified, and is listed as indistinguishable from it."""
        return not self.first and self.true in congestion.same(self.ranking)

    @property
    def is_just_that(self) -> bool:
        """Return True if the flow's CCA is none of ours, and behaved like the one identified."""
        off = self.ranking[0]["off"] if self.ranking else None
        return self.true not in OURS and off is not None and off < JUST_THAT

    @property
    def right(self) -> bool:
        """Return True if the flow's CCA is among those identified; or "unknown" where no name is right."""
        return self.first or self.is_same


def main() -> None:
    """Prints a line for each control, and the shares that are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20 * len(CONTROLS), metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N")
    parser.add_argument("--since", type=int, default=20, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--csv", type=Path, metavar="FOLDER")
    parser.add_argument("--linux", type=Path, metavar="FOLDER")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each flow, and nothing else")
    given = parser.parse_args()
    transfers = sorted(given.csv.glob("*/*.csv.gz")) if given.csv else []
    with ProcessPoolExecutor(given.jobs) as pool:
        own = [one for found in pool.map(of_case, numbers(given.first, given.cases, given.since)) for one in found]
        others = list(pool.map(of_csv, transfers))
    guests = of_guests(given.linux) if given.linux else []
    if given.json:
        for one in own + others + guests:
            print(json.dumps(asdict(one)))
        return
    for vantage in VANTAGES:
        seen = [one for one in own if one.vantage == vantage]
        if not seen:
            continue
        _print(f"own flows at the {vantage}", seen)
        wide = [one for one in seen if one.window >= WIDE]
        print(f"  of those whose window reached {WIDE}: {sum(one.right for one in wide)} of {len(wide)} right\n")
    _print_others("others' flows", others)
    for vantage in dict.fromkeys(one.vantage for one in guests):
        _print_others(f"the guest kernel's flows ({vantage})", [one for one in guests if one.vantage == vantage])


def _print_others(title: str, named: Sequence[Named]) -> None:
    """Print the flows of kernels: in total, by condition, and how reliable the probabilities are."""
    for have, chosen in (
        ("controls that we have", [one for one in named if one.true in OURS]),
        ("controls that we have not", [one for one in named if one.true not in OURS]),
    ):
        _print(f"{title}, {have}", chosen)
    for condition in sorted({_condition(one) for one in named}):
        chosen = [one for one in named if _condition(one) == condition]
        known, foreign = ([one for one in chosen if (one.true in OURS) == have] for have in (True, False))
        wrong = sum(not one.right and one.identified != congestion.UNKNOWN for one in known)
        print(
            f"{condition:16} {sum(one.right for one in known):3} of {len(known):3} right, {wrong:2} wrong; "
            f"{sum(one.right for one in foreign):3} of {len(foreign):3} unknown"
        )
    _print_reliability(named)


def _condition(one: Named) -> str:
    return one.source.split("/")[0]


def _print_reliability(named: Sequence[Named]) -> None:
    """Print the names by their probability: mean probability, share that is right, number."""
    tenths: dict[int, list[Named]] = {}
    for one in named:
        if one.identified != congestion.UNKNOWN:
            tenths.setdefault(int(10 * one.ranking[0]["probability"]), []).append(one)
    bins = (
        f"{sum(one.ranking[0]['probability'] for one in chosen) / len(chosen):.2f} "
        f"{sum(one.right for one in chosen) / len(chosen):.2f} ({len(chosen)})"
        for _, chosen in sorted(tenths.items())
    )
    print(f"probability, share right (names): {'; '.join(bins)}\n")


def _print(title: str, named: Sequence[Named]) -> None:
    said: dict[str, Counter[tuple[str, str]]] = {}
    for one in named:
        note = " (the same)" * one.is_same + " (just that)" * one.is_just_that
        said.setdefault(one.true, Counter())[one.identified, note] += 1
    if not said:
        return
    for true, names in sorted(said.items()):
        told = (f"{name} {count}{note}" for (name, note), count in names.most_common())
        print(f"{true:12} {', '.join(told)}")
    right = [one.right for one in named]
    first = sum(one.first for one in named)
    print(f"{title}: {sum(right)} of {len(right)} right ({sum(right) / len(right):.3f}), {first} first\n")
    if just_that := sum(one.is_just_that for one in named):
        print(f"  without those that did just what is said: {sum(right)} of {len(right) - just_that} right\n")


def of_case(number: int) -> list[Named]:
    """The flows of a case."""
    with tempfile.TemporaryDirectory() as place:
        data = ac.run(ac.loads(_text(number), name=f"which-{number}.toml").plan(), captures=Path(place), jobs=1)
        found = {path.stem.rsplit("-")[-1]: read_capture([path]) for path in sorted(Path(place).iterdir())}
    hits = pl.col("kind").cast(pl.String).is_in(["recovery", "timeout", "mark_reaction"])
    epochs = Counter(data.events.filter(hits)["flow"].to_list())
    true = dict(data.flows.select("flow", "congestion").rows())
    widest = dict(data.flow_samples.group_by("flow").agg(pl.col("cwnd").max()).rows())
    told = [
        (_number(flow["client"]), vantage, flow["congestion"])
        for vantage, one in found.items()
        for flow in one.analysis["flows"]
    ]
    return [
        Named(
            true[flow],
            congestion.word(ranking),
            f"case {number}, flow {flow}, {epochs[flow]} epochs",
            ranking or [],
            vantage,
            widest[flow],
        )
        for flow, vantage, ranking in told
        if epochs[flow] >= MIN_EPOCHS
    ]


def _number(client: str) -> int:
    """Return the number of a flow, from its sender's address."""
    _, high, middle, low = map(int, client.split(":", maxsplit=1)[0].split("."))
    return (high << 16 | middle << 8 | low) - 1


def _text(number: int) -> str:
    """The scenario of a case."""
    draw = random.Random(f"which {number}")
    kind = control(number)
    rate_bps, rtt_s = _between(draw, 1e6, 5e7), _between(draw, 5e-3, 0.2)
    duration_s = min(LONGEST_S, MOST_PACKETS * 8 * PACKET_BYTES / rate_bps)
    bdp_p = rate_bps * rtt_s / (8 * PACKET_BYTES)
    limit_p = max(8, round(bdp_p * _between(draw, 0.3, 2)))
    queue = f'{{ discipline = "pfifo", limit = "{limit_p}p" }}'
    if kind == "dctcp":  # which lives on marks
        mark_bytes = PACKET_BYTES * max(5, limit_p // 4)
        queue = (
            f'{{ discipline = "red", limit = "1MB", min = "{mark_bytes}B", max = "{mark_bytes + 1}B", weight = 1.0, '
            "probability = 1.0, ecn = true }"
        )
    lines = [
        f'name = "Which, case {number}"',
        f'duration = "{duration_s:.3f}s"',
        f"seeds = [{number + 1}]",
        "[network]",
        'topology = "dumbbell"',
        f'rate = "{rate_bps / 1e3:.0f}kbit"',
        f'rtt = "{1e6 * rtt_s:.0f}us"',
        f"queue = {queue}",
        "[record]",
        f"pcap = {json.dumps(VANTAGES)}",
    ]
    for name in [kind, *draw.choices([kind, "cubic"], [3, 1], k=draw.choice([0, 0, 1, 2, 3]))]:
        lines += ["[[flows]]", f'congestion = "{name}"', 'start = { jitter = "1s" }']
    return "\n".join([*lines, ""])


def _between(draw: random.Random, least: float, most: float) -> float:
    """Evenly on a scale of powers."""
    return math.exp(draw.uniform(math.log(least), math.log(most)))


def of_csv(path: Path) -> Named:
    """The flow of a transfer, by way of a capture."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "transfer.pcap"
        tshark.write(path, file)
        return of_capture(file, path.name.removesuffix(".csv.gz"), f"{path.parent.name}/{path.name}")


def of_capture(file: Path, true: str, source: str, vantage: str = VANTAGES[0]) -> Named:
    """The flow with the most data in a capture."""
    most = max(read_capture([file]).analysis["flows"], key=lambda flow: flow["bytes"] or 0)
    ranking = most["congestion"]
    return Named(true, congestion.word(ranking), source, ranking or [], vantage)


def of_guests(folder: Path) -> list[Named]:
    """The flows of the guest kernel's transfers, at both ends and without options, one run at a time."""
    named = []
    for delay_ms, rate_kbps in CONDITIONS:
        place = folder / f"{delay_ms}-ms-{rate_kbps}-kbps"
        place.mkdir(parents=True, exist_ok=True)
        for kind in cache.chosen().about["congestion"]:
            files = {vantage: place / f"{kind}-{vantage}.pcap" for vantage in VANTAGES}
            if not all(file.exists() for file in files.values()):
                _run_guest(_slow(kind, delay_ms, rate_kbps), files)
            source = f"{place.name}/{kind}"
            named += [of_capture(file, kind, source, vantage) for vantage, file in files.items()]
            with tempfile.TemporaryDirectory() as temporary:
                bare = Path(temporary) / "bare.pcap"
                tshark.strip(files[VANTAGES[0]], bare)
                named.append(of_capture(bare, kind, source, "senders, without options"))
    return named


def _run_guest(text: str, files: dict[str, Path]) -> None:
    with tempfile.TemporaryDirectory() as place:
        ac.run(ac.loads(text, name="which-guest.toml").plan(), engine="linux", captures=Path(place), jobs=1)
        for vantage, file in files.items():
            (made,) = Path(place).glob(f"*-{vantage}.pcap")
            shutil.copyfile(made, file)


def _slow(kind: str, delay_ms: int, rate_kbps: int) -> str:
    """The scenario of a transfer: both directions have opportunities, at the same times."""
    opportunities = max(1, 1000 * rate_kbps // (8 * OPPORTUNITY_BYTES))
    trace = "\n".join(str(round(1000 * number / opportunities)) for number in range(1, opportunities + 1))
    limit_p = max(2, rate_kbps * (2 * delay_ms + MORE_QUEUE_MS) // (8 * QUEUED_BYTES))
    link = f'rate = {{ trace = "t" }}, delay = "{delay_ms}ms"'
    return f"""
duration = "30s"
seeds = [1]
[network]
topology = "asymmetric"
frame_overhead = "4B"
down = {{ {link}, queue = {{ discipline = "pfifo", limit = "{limit_p}p" }} }}
up = {{ {link}, queue = {{ discipline = "pfifo", limit = "1000p" }} }}
[tcp]
mtu = "{SMALL_BYTES}B"
mss = "{SMALL_MSS}B"
[[flows]]
congestion = "{kind}"
start = "7ms"
[record]
pcap = {json.dumps(VANTAGES)}
interval = "100ms"
[traces]
t = '''
{trace}
'''
"""


if __name__ == "__main__":
    main()
