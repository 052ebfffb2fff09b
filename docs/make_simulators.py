"""Makes the page about the engines ns2 and ns3: `concepts/simulators.md`, with a table of five runs for each cell.

    python docs/make_simulators.py [reno | cubic | 10Mbit | 50Mbit]

Takes half an hour of CPU; needs ns-2 and ns-3 (Debian's ns2, g++, libns3-dev) and a guest kernel (`make kernel`). With
`reno` or `cubic` only the part about that control in ns-3 is made anew, in minutes; with a rate the cells of that rate.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import claims

import ackclock as ac
from ackclock.engines.engine import Engine
from ackclock.engines.ns2 import Ns2Engine
from ackclock.engines.ns3 import Ns3Engine
from ackclock.engines.packet import PacketEngine
from ackclock.errors import UnsupportedError
from ackclock.figures import numbers
from ackclock.plan import Plan

PAGE = Path(__file__).resolve().parent / "concepts" / "simulators.md"

Cell: TypeAlias = tuple[str, str, str, int]

CONTROLS = {"Reno": '"reno"', "CUBIC": '{ kind = "cubic", slow_start = "standard", reno_friendly = false }'}
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
script in Tcl, or a program in C++, which `ackclock export` writes as well; its output becomes the same tables, and the
same metrics read them. This shows whether a result is due to the network or to the simulator.

```console
$ ackclock compare scenarios/mine.toml --engine packet,ns2,ns3
```

## Differences from the packet engine

Both:

- They have neither RACK nor tail loss probes. A scenario that requires them is rejected, and this includes every one
  with the default stack: `[tcp] stack = "ns2"` with `sack = true` is a TCP that both have.
- Sojourn times of single packets are not available; the mean is the queue's integral over the packets that left
  (Little's law).
- Flows start at the same times as in the packet engine; generated transfers and UDP datagrams are the ones it draws.

ns-2:

- Its TCP is one-way. There is no handshake and no FIN; a first packet of headers alone takes the place of the SYN, and
  a transfer is a whole number of segments.
- RTTs are in ticks of `rtt_tick`, 10 ms by default, and of 1 ms where that is 0.
- `Agent/TCP/Linux` runs the congestion control algorithms of Linux 2.6.22: CUBIC has no HyStart there, and its C is
  0.4. Reno is `Agent/TCP/Sack1`, or `Agent/TCP/Newreno` without SACK.
- Queues: `pfifo`, `bfifo`, `red`, `ared`. Its RED never drops a packet early that finds the queue empty
  (`spare_empty = true`). ns-2 drops a packet that would fill a queue to its limit, so its script has a limit
  larger by one. A packet carries its frame's bytes from the start.

ns-3:

- One bottleneck. A device holds one packet behind the qdisc, so one of the packets that the limit allows waits there.
- Its CUBIC has no Reno-friendly region.
- BBR is `TcpBbr`, version 1. Two BBR flows beside Reno flows behind a buffer of two BDPs run into timeouts, which those
  of the packet engine do not, and get a smaller share of the link (`tests/engines/ns3`).
- Queues: `pfifo`, `bfifo`, `red`, `codel`. Frames have 2 bytes; the rate is adjusted to compensate, exactly for full
  segments.

Both support generated traffic, UDP (but not at a rate that follows the delay), random losses, ECN as in RFC 3168 and
links whose rate changes; ns-2 also several queues in a row and on the reverse path, links whose delay changes, and
networks of hosts and switches (below). A random loss may hit a SYN, which the other engines spare; ns-2's RED with ECN
drops beyond `max` (`harddrop = true`). Neither supports paths drawn packet by packet, flowlets, Valiant routing, links
that fail, or captures.

## Networks of hosts and switches in ns-2

A routed network (`fat-tree`, `leaf-spine`, `parking-lot` and so on) with `routing = "single"`, `"ecmp"` or `"weighted"`
runs in ns-2 along the packet engine's own paths: each flow's path is found before the run, with the seed's hashes, and
written into the script link by link (`rtproto Manual`). ns-2's own equal-cost routing alternates packet by packet
(`multiPath_`), which is none of these. The table `paths` is the same in both engines.

In a fat tree of 16 hosts with 10 Mb/s links and ECMP, 16 Reno flows go from pod to pod for 5 s, limited by their
receive windows before anything is lost. `tests/engines/ns2/test_routed.py` requires each flow's goodput in ns-2 within
2 % of that in the packet engine, what each link carried within 3 %, and the mean queueing delay within 2 %. Where
packets are lost, chance decides which of the flows that share a link gets more, so single flows may differ.

## Compared with the packet engine and Linux

One bottleneck, a base RTT of 50 ms, 40 s of which the first 10 are left out, one seed; flows start within a second.
The first three columns run the TCP of ns-2, the others that of Linux; CUBIC is without HyStart and without its
Reno-friendly region.

"""

RENO = """## Reno in ns-3

With short queues ns-3's Reno gets more goodput than the same TCP in ns-2 and in the packet engine, and ten flows lose
more packets. <!-- so: all(number(row["ns-3"]) > max(number(row["ns-2"]), number(row["packet, TCP of ns-2"])) for rate
in ("### At 10 Mb/s", "### At 50 Mb/s") for table in ("#### Goodput", "#### Loss rate") for row in rows(rate, table)
if " Reno, " in row["cell"] and ("0.1 BDP" in row["cell"] or "0.3 BDP" in row["cell"]) and (table == "#### Goodput" or
row["cell"].startswith("10 "))) --> The difference is in its window, in two places, both of which are specific to
ns-3.37 and left as they are:

- The ACK that ends a recovery acknowledges everything sent since, most of which had been SACKed before. ns-3 lets the
  window grow for all of these segments at once, by one or two segments if the window is large, and by more if it is
  small. (Linux counts a segment when it is delivered, ns-2 counts an ACK.)
- `TcpLinuxReno` counts segments towards the next increase of the window, and does not reset this count at a loss.

So a cycle is up to three round trips shorter. It also leaves the recovery with a burst. With both undone, in a separate
class that counts ACKs and resets the count at a loss, ns-3 is close to ns-2, within 1 % in goodput: <!-- so: all(
abs(number(rows("## Reno in ns-3")[-1][flows]) / number(rows("## Reno in ns-3")[0][flows]) - 1) < 0.01
for flows in ("1 Reno", "10 Reno")) -->

"""

#: Settings with neither of the two, the first and both undone.
UNDONE = {
    "ns-3": None,
    "ns-3, an ACK counts as one segment": "TcpLinuxReno::IncreaseWindow(tcb, std::min(segments, 1u));",
    "ns-3, and the count begins anew at a loss": (
        "if (tcb->m_cWnd < tcb->m_ssThresh) { SlowStart(tcb, std::min(segments, 1u)); return; }\n"
        "        if (++m_count < tcb->GetCwndInSegments()) return;\n"
        "        m_count = 0;\n"
        "        tcb->m_cWnd += tcb->m_segmentSize;"
    ),
}

CUBIC = """## CUBIC in ns-3

Where flows with small windows run into timeouts, as ten of them do behind CoDel at 10 Mb/s, ns-3's CUBIC fills the
queue that CoDel keeps short elsewhere. ns-3.37's `TcpCubic` lets the window grow in slow start by as many segments as
an ACK acknowledges, and does not stop at the slow-start threshold. After a timeout, the ACK for the first segment
retransmitted acknowledges all that had been SACKed behind it, so a window of one segment becomes one of several times
the threshold, which leaves as one burst, loses many packets, and ends in the next timeout. With a slow start that ends
at the threshold, in a separate class, ns-3 is close to the packet engine, within 1 % in goodput and 3 ms in delay:
<!-- so: (ours := rows("## CUBIC in ns-3")[0]) and (ns_3 := rows("## CUBIC in ns-3")[2]) and abs(number(ns_3["goodput"])
/ number(ours["goodput"]) - 1) < 0.01 and abs(number(ns_3["mean queueing delay"]) - number(ours["mean queueing delay"]))
< 3e-3 and number(rows("## CUBIC in ns-3")[1]["mean queueing delay"]) > 10 * number(ours["mean queueing delay"]) -->

"""

#: The growth of CUBIC's window, as it is and bounded.
BOUNDED = {
    "ns-3": None,
    "ns-3, slow start ends at the threshold": (
        "if (tcb->m_cWnd < tcb->m_ssThresh)\n"
        "        {\n"
        "            const uint32_t bytes = tcb->m_ssThresh - tcb->m_cWnd;\n"
        "            segments = std::min(segments, (bytes + tcb->m_segmentSize - 1) / tcb->m_segmentSize);\n"
        "        }\n"
        "        TcpCubic::IncreaseWindow(tcb, segments);"
    ),
}

CHANGED = """
class Changed : public PARENT
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("ns3::Changed").SetParent<PARENT>().AddConstructor<Changed>();
        return tid;
    }
    uint32_t GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t flight) override
    {
        m_count = 0;
        return PARENT::GetSsThresh(tcb, flight);
    }
    void IncreaseWindow(Ptr<TcpSocketState> tcb, uint32_t segments) override
    {
        GROWTH
    }
    Ptr<TcpCongestionOps> Fork() override { return CopyObject<Changed>(this); }

  private:
    uint32_t m_count{0};
};
NS_OBJECT_ENSURE_REGISTERED(Changed);
"""


class Changed(Ns3Engine):
    """ns-3 with a control, `parent` there, whose window grows otherwise."""

    def __init__(self, parent: str, growth: str | None) -> None:
        self.parent = parent
        self.growth = growth

    def make(self, plan: Plan, seed: int, folder: Path) -> Sequence[Sequence[str]]:
        """The program with that class in it."""
        commands = super().make(plan, seed, folder)
        if self.growth is not None:
            text = (folder / "run.cc").read_text(encoding="utf-8")
            begin = "using namespace ns3;\n"
            changed = CHANGED.replace("PARENT", self.parent).replace("GROWTH", self.growth)
            text = text.replace(f'"ns3::{self.parent}"', '"ns3::Changed"').replace(begin, begin + changed, 1)
            (folder / "run.cc").write_text(text, encoding="utf-8")
        return commands


def reno() -> str:
    """The part about Reno in ns-3."""
    engines: dict[str, Engine] = {name: Changed("TcpLinuxReno", growth) for name, growth in UNDONE.items()}
    lines = [f"| goodput, loss rate | {' | '.join(f'{count} Reno' for count in COUNTS)} |", "|---|---:|---:|"]
    for name, engine in {"ns-2": Ns2Engine(), **engines}.items():
        shown = (_of(engine, "Reno", "pfifo 0.1 BDP", count, ("goodput_bps", "loss_rate")) for count in COUNTS)
        lines.append(f"| {name} | {' | '.join(', '.join(cell) for cell in shown)} |")
    return RENO + "10 Mb/s, 50 ms, a pfifo of 0.1 BDP:\n\n" + "\n".join(lines) + "\n\n"


def cubic() -> str:
    """The part about CUBIC in ns-3."""
    engines: dict[str, Engine] = {name: Changed("TcpCubic", growth) for name, growth in BOUNDED.items()}
    lines = [f"| 10 CUBIC | {' | '.join(heading.lower() for heading, _ in METRICS.values())} |", "|---|---:|---:|---:|"]
    for name, engine in {"packet, TCP of ns-2": PacketEngine(), **engines}.items():
        lines.append(f"| {name} | {' | '.join(_of(engine, 'CUBIC', 'CoDel', 10, tuple(METRICS)))} |")
    return CUBIC + "10 Mb/s, 50 ms, CoDel:\n\n" + "\n".join(lines) + "\n\n"


def _of(engine: Engine, control: str, queue: str, count: int, metrics: Sequence[str]) -> list[str]:
    text = SCENARIO.format(rate="10Mbit", queue=QUEUES[queue], tcp=OF_NS2, count=count, control=CONTROLS[control])
    found = engine.run(ac.loads(text).plan(), 1).metrics()["summary"]
    return [numbers.value(found[name]["mean"], METRICS[name][1]) for name in metrics]


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
        yield f"#### {heading}\n"
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
    """Return the number of cells in which two columns agree, of the cells that both have."""
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


#: Parts of the page that can be made separately: the CCA's name in its heading, and the function that makes it.
PARTS = {"reno": ("Reno", reno), "cubic": ("CUBIC", cubic)}


def main(part: str) -> None:
    """Runs all cells and writes the page; or what is asked for of it."""
    if part in PARTS:
        page = PAGE.read_text(encoding="utf-8")
        there = re.compile(rf"## {PARTS[part][0]} in ns-3\n.*?(?=## )", re.DOTALL)
        claims.write(PAGE, there.sub(lambda _: PARTS[part][1](), page))
        return
    if part in RATES:
        page = PAGE.read_text(encoding="utf-8")
        there = re.compile(rf"{heading(part)}.*?(?=\n### |\Z)", re.DOTALL)
        claims.write(PAGE, there.sub(lambda _: of_rate(part), page))
        return
    text = TEXT.replace("## Compared", f"{reno()}{cubic()}## Compared", 1) + "\n".join(of_rate(rate) for rate in RATES)
    claims.write(PAGE, text.rstrip() + "\n")


def heading(rate: str) -> str:
    """Return the heading of the cells of a rate."""
    return f"### At {rate.removesuffix('Mbit')} Mb/s\n"


def of_rate(rate: str) -> str:
    """The cells of a rate: how often columns agree, and the tables."""
    cells = [*product(CONTROLS, QUEUES, (rate,), COUNTS)]
    jobs = [(cell, column) for cell in cells for column in COLUMNS]
    with ProcessPoolExecutor(max_workers=2) as pool:
        found = dict(zip(jobs, pool.map(measured, jobs), strict=True))
    return "\n".join((heading(rate), differences(found, cells), *tables(found, cells)))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
