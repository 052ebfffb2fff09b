"""Makes the page about the engines ns2 and ns3: `concepts/simulators.md`, with a table of five runs for each cell.

    python docs/make_simulators.py

Takes half an hour of CPU; needs ns-2 and ns-3 (Debian's ns2, g++, libns3-dev) and a guest kernel (`make kernel`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import ackclock as ac
from ackclock.errors import UnsupportedError
from ackclock.views import numbers

PAGE = Path(__file__).resolve().parent / "concepts" / "simulators.md"

Cell: TypeAlias = tuple[str, str, str, int]

CONTROLS = {"Reno": '"reno"', "CUBIC": '{ kind = "cubic", hystart = false, reno_friendly = false }'}
QUEUES = {
    "pfifo 0.1 BDP": '{ discipline = "pfifo", limit = "0.1bdp" }',
    "pfifo 0.3 BDP": '{ discipline = "pfifo", limit = "0.3bdp" }',
    "pfifo 1 BDP": '{ discipline = "pfifo", limit = "1bdp" }',
    "CoDel": '{ discipline = "codel" }',
    "RED": '{ discipline = "red", limit = "2bdp", min = "0.15bdp", max = "0.45bdp", probability = 0.02 }',
}
RATES = ("10Mbit", "50Mbit")
COUNTS = (1, 10)

OF_NS2 = 'stack = "ns2"\nsack = true\ntimestamps = true\nmss = "1448B"\ninitial_window = 10'

#: Column → engine and TCP.
COLUMNS = {
    "packet, TCP of ns-2": ("packet", OF_NS2),
    "ns-2": ("ns2", OF_NS2),
    "ns-3": ("ns3", OF_NS2),
    "packet, TCP of Linux": ("packet", 'stack = "linux"'),
    "Linux": ("linux", 'stack = "linux"'),
}

SCENARIO = """
name = "Beside other simulators"
duration = "40s"
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

TEXT = """<!-- Made by docs/make_simulators.py: edit that. -->

# The engines ns2 and ns3

Most older studies of TCP were made with ns-2, and many younger ones with ns-3. `--engine ns2` and `--engine ns3` run
a scenario in ns-2 2.35 and ns-3.37 themselves (Debian's packages `ns2`; `g++` and `libns3-dev`): the plan becomes a
script in Tcl, or a program in C++, which `ackclock export` writes too; what it writes becomes the same tables, and the
same metrics read them. So it can be told whether a figure is the network's or the simulator's.

```console
$ ackclock compare scenarios/mine.toml --engine packet,ns2,ns3
```

## What they do otherwise

Both:

- Neither RACK nor tail loss probes are there. A scenario that asks for them is refused, and that is every one with the
  default stack: `[tcp] stack = "ns2"` with `sack = true` is a TCP that both have.
- Sojourn times of single packets are not known; the mean is the queue's integral over the packets that left (Little's
  law).
- Each draws the beginnings of flows in its own way.

ns-2:

- Its TCP is one-way. There is no handshake and no FIN; a first packet of headers alone stands for the SYN, a transfer
  is a whole number of segments.
- Timers and RTTs are in ticks, of 1 ms unless `timer_tick` says otherwise.
- `Agent/TCP/Linux` runs the congestion controls of Linux 2.6.22: CUBIC has no HyStart there, and its C is 0.4. Reno is
  `Agent/TCP/Sack1`, or `Agent/TCP/Newreno` without SACK.
- Queues: `pfifo`, `bfifo`, `red`. ns-2 drops a packet that would make a queue as long as its limit, so its script has a
  limit of one more. A packet carries its frame's bytes from the start.

ns-3:

- One bottleneck. A device holds a packet of its own behind the queue discipline: of what may wait, one packet waits
  there.
- Its CUBIC has no region that is friendly to Reno.
- Queues: `pfifo`, `bfifo`, `red`, `codel`. Frames have 2 bytes; the rate makes up for the difference.

Not yet in either: generated traffic, UDP, random losses, routed networks, changes of links, ECN, captures.

## Beside the packet engine and Linux

One bottleneck, a base RTT of 50 ms, 40 s of which the first 10 are left out, one seed; flows begin within a second.
The first three columns run the TCP of ns-2, the others that of Linux; CUBIC is without HyStart and without its region
that is friendly to Reno.
Why ns-3's Reno gets more through short queues, and why ten of its flows fill a long one further, has not been found.

"""


def measured(job: tuple[Cell, str]) -> dict[str, float | None]:
    """The metrics of one run."""
    (control, queue, rate, count), column = job
    engine, tcp = COLUMNS[column]
    text = SCENARIO.format(rate=rate, queue=QUEUES[queue], tcp=tcp, count=count, control=CONTROLS[control])
    try:
        found = ac.run(ac.loads(text), engine=engine).metrics()["summary"]
    except UnsupportedError:
        return dict.fromkeys(METRICS)
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


#: Columns that are set beside each other.
PAIRS = (
    ("packet, TCP of ns-2", "ns-2"),
    ("packet, TCP of ns-2", "ns-3"),
    ("packet, TCP of Linux", "Linux"),
)


def differences(found: Mapping[tuple[Cell, str], Mapping[str, Any]], cells: list[Cell]) -> str:
    """How often two columns agree, of the cells that both have."""
    said = []
    for first, second in PAIRS:
        pairs = [(found[cell, first], found[cell, second]) for cell in cells]
        pairs = [(a, b) for a, b in pairs if a["goodput_bps"] is not None and b["goodput_bps"] is not None]
        goodput = sum(abs(a["goodput_bps"] / b["goodput_bps"] - 1) <= 0.02 for a, b in pairs)
        delays = [(a["queue_delay_mean_s"], b["queue_delay_mean_s"]) for a, b in pairs]
        delay = sum(abs(a / b - 1) <= 0.1 or abs(a - b) <= 0.003 for a, b in delays)
        said.append(
            f"*{first}* and *{second}* agree in goodput within 2 % in {goodput} of {len(pairs)} cells, and in "
            f"queueing delay within 10 % or 3 ms in {delay}."
        )
    return "\n".join(said) + "\n"


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
