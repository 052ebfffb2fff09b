"""Makes the page about the engine ns2: `concepts/ns2.md`, with a table of four runs for each cell.

    python docs/make_ns2.py

Takes some twenty minutes of CPU; needs ns-2 (Debian's package ns2) and a guest kernel (`make kernel`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import ackclock as ac
from ackclock.views import numbers

PAGE = Path(__file__).resolve().parent / "concepts" / "ns2.md"

Cell: TypeAlias = tuple[str, str, str, int]

CONTROLS = {"Reno": '"reno"', "CUBIC": '{ kind = "cubic", hystart = false }'}
QUEUES = {
    "pfifo 0.1 BDP": '{ discipline = "pfifo", limit = "0.1bdp" }',
    "pfifo 0.3 BDP": '{ discipline = "pfifo", limit = "0.3bdp" }',
    "pfifo 1 BDP": '{ discipline = "pfifo", limit = "1bdp" }',
    "RED": '{ discipline = "red", limit = "2bdp", min = "0.15bdp", max = "0.45bdp", probability = 0.02 }',
}
RATES = ("10Mbit", "100Mbit")
COUNTS = (1, 10)

OF_NS2 = 'stack = "ns2"\nsack = true\ntimestamps = true\nmss = "1448B"\ninitial_window = 10'

#: Column → engine and TCP.
COLUMNS = {
    "packet, TCP of ns-2": ("packet", OF_NS2),
    "ns-2": ("ns2", OF_NS2),
    "packet, TCP of Linux": ("packet", 'stack = "linux"'),
    "Linux": ("linux", 'stack = "linux"'),
}

SCENARIO = """
name = "Beside ns-2"
duration = "60s"
warmup = "10s"
seeds = [1]
[network]
topology = "dumbbell"
rate = "{rate}"
rtt = "50ms"
queue = {queue}
[tcp]
{tcp}
[[flows]]
count = {count}
congestion = {control}
start = {{ at = "0s", jitter = "1s" }}
"""

#: Metric → heading and unit.
METRICS = {
    "goodput_bps": ("Goodput", "bit/s"),
    "queue_delay_mean_s": ("Mean queueing delay", "s"),
    "loss_rate": ("Loss rate", "share"),
}

TEXT = """<!-- Made by docs/make_ns2.py: edit that. -->

# The engine ns2

Most older studies of TCP were made with ns-2. `--engine ns2` runs a scenario in ns-2 2.35 itself (Debian's package
`ns2`): the plan becomes a script, what it writes becomes the same tables, and the same metrics read them. So it can be
told whether a figure is the network's or the simulator's.

```console
$ ackclock compare scenarios/mine.toml --engine packet,ns2
```

## What ns-2 does otherwise

- Its TCP is one-way. There is no handshake and no FIN; a first packet of headers alone stands for the SYN, a transfer
  is a whole number of segments.
- Timers and RTTs are in ticks, of 1 ms unless `timer_tick` says otherwise.
- `Agent/TCP/Linux` runs the congestion controls of Linux 2.6.22: CUBIC has no HyStart there, and its C is 0.4. Reno is
  `Agent/TCP/Sack1`, or `Agent/TCP/Newreno` without SACK.
- Neither RACK nor tail loss probes nor proportional rate reduction are there. A scenario that asks for them is refused,
  and that is every one with the default stack: `[tcp] stack = "ns2"` is the TCP that ns-2 has, with `sack = true` for
  all controls but Reno and Tahoe.
- Queues: `pfifo`, `bfifo`, `red`. ns-2 drops a packet that would make a queue as long as its limit, so its script has a
  limit of one more. A packet carries its frame's bytes from the start.
- Sojourn times of single packets are not known; the mean is the queue's integral over the packets that left (Little's
  law).

Not yet: generated traffic, UDP, random losses, routed networks, changes of links, ECN, captures.

## Beside the packet engine and Linux

One bottleneck, a base RTT of 50 ms, 60 s of which the first 10 are left out, one seed; flows begin within a second.
Each engine draws the beginnings in its own way. The first two columns run the TCP of ns-2, the others that of Linux,
all without HyStart.

"""


def measured(job: tuple[Cell, str]) -> dict[str, float | None]:
    """The metrics of one run."""
    (control, queue, rate, count), column = job
    engine, tcp = COLUMNS[column]
    text = SCENARIO.format(rate=rate, queue=QUEUES[queue], tcp=tcp, count=count, control=CONTROLS[control])
    found = ac.run(ac.loads(text), engine=engine).metrics()["summary"]
    return {name: found[name]["mean"] for name in METRICS}


def tables(found: Mapping[tuple[Cell, str], Mapping[str, Any]], cells: list[Cell]) -> Iterator[str]:
    """A table for each metric."""
    for metric, (heading, unit) in METRICS.items():
        yield f"### {heading}\n"
        yield f"| cell | {' | '.join(COLUMNS)} |"
        yield f"|---|{'---:|' * len(COLUMNS)}"
        for cell in cells:
            control, queue, rate, count = cell
            name = f"{count} {control}, {rate.removesuffix('Mbit')} Mb/s, {queue}"
            values = (numbers.value(found[cell, column][metric], unit) for column in COLUMNS)
            yield f"| {name} | {' | '.join(values)} |"
        yield ""


def differences(found: Mapping[tuple[Cell, str], Mapping[str, Any]], cells: list[Cell]) -> str:
    """How often two columns agree."""
    said = []
    for first, second in (("packet, TCP of ns-2", "ns-2"), ("packet, TCP of Linux", "Linux")):
        pairs = [(found[cell, first], found[cell, second]) for cell in cells]
        goodput = sum(abs(a["goodput_bps"] / b["goodput_bps"] - 1) <= 0.02 for a, b in pairs)
        delays = [(a["queue_delay_mean_s"], b["queue_delay_mean_s"]) for a, b in pairs]
        delay = sum(abs(a / b - 1) <= 0.1 or abs(a - b) <= 0.003 for a, b in delays)
        said.append(
            f"*{first}* and *{second}* agree in goodput within 2 % in {goodput} of {len(cells)} cells, and in "
            f"queueing delay within 10 % or 3 ms in {delay}."
        )
    return " ".join(said) + "\n"


def main() -> None:
    """Runs all cells and writes the page."""
    cells = [*product(CONTROLS, QUEUES, RATES, COUNTS)]
    jobs = [(cell, column) for cell in cells for column in COLUMNS]
    with ProcessPoolExecutor(max_workers=2) as pool:
        found = dict(zip(jobs, pool.map(measured, jobs), strict=True))
    text = TEXT + differences(found, cells) + "\n" + "\n".join(tables(found, cells))
    PAGE.write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
