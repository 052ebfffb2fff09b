"""Makes the page that sets the packet engine beside recorded runs of Linux: a table, and the windows over each other.

Runs the twelve settings of `tests/agreement` through the packet engine and writes `concepts/agreement.md` and a picture
for each congestion control into docs/; neither is kept in the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from agreement import linux  # type: ignore[import-not-found] # noqa: E402

from ackclock.plots.style import COLOURS, STYLE  # noqa: E402

INTRODUCTION = """<!-- Made by docs/make_agreement.py: edit that. -->

# Beside real Linux

Twelve recorded runs of Linux 6.1 (`tests/agreement/data`, which says how they were made), and the same
settings in the packet engine with its `linux` stack: goodput and queueing delay over 10–60 s, retransmissions
over the whole run. The queueing delay is the mean smoothed RTT less the base RTT on both sides. A run agrees
if the goodput is within 2 % and the queueing delay within 10 % or 3 ms; `tests/agreement/test_linux.py` holds
nine of ten to that.

"""

CAUSES = """
## What differs, and why

- **A packet's transmission is part of the engine's base RTT.** In these runs the kernel's token bucket
  (`htb`, burst 1600 B) lets a packet go when its tokens suffice, so it leaves at the beginning of its
  transmission and not at the end: the round trip is one transmission shorter (0.6 ms at 20 Mb/s), which shows
  with the smallest buffers.
- **Linux's clock ticks.** The recorded kernel has `HZ=100`. The engine's time is continuous; only CUBIC's
  look at its curve has a tick, 4 ms by default (`tick` on its card).
- **The first RTT sample is 100 ms in Linux**, as the ARP reply passes the delay too; it is gone from the
  average in a second.
- **Fairness of the ten-flow runs** is lower in Linux. Its receivers read every 5 ms there, which bunches the
  ACKs; the engine's read at once.
- **A run of ten flows is one outcome of many.** A millisecond's shift of one start changes who loses first;
  goodput and delay hardly change, retransmissions by tens of per cent.
"""


def page(results: list[linux.Simulated]) -> str:
    """The page in Markdown."""
    lines = [linux.HEAD, ("---",) * len(linux.HEAD), *(linux.row(result) for result in results)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    agreeing = sum(result.agrees for result in results)
    text = f"{INTRODUCTION}{agreeing} of {len(results)} agree.\n\n{table}\n\n## Congestion windows\n\n"
    text += "Linux in grey, the packet engine in colour; of ten flows the sum of the windows is drawn.\n\n"
    for congestion in congestions(results):
        text += f"![Congestion windows of {congestion}: Linux and the packet engine](agreement-{congestion}.svg)\n\n"
    return text + CAUSES


def congestions(results: list[linux.Simulated]) -> list[str]:
    """The congestion controls, in order."""
    return sorted({result.run.congestion for result in results})


def windows(results: list[linux.Simulated]) -> Figure:
    """The windows of one congestion control, a panel a run."""
    figure = Figure(figsize=(7.0, 1.35 * len(results)), layout="constrained")
    panels = figure.subplots(len(results), 1, sharex=True)
    for panel, result in zip(panels, results, strict=True):
        times_s, theirs = linux.recorded_windows(result.run)
        ours = result.windows_at(times_s)
        panel.plot(times_s, np.nansum(theirs, axis=1), color="#999999", linewidth=2.2, label="Linux 6.1")
        panel.plot(times_s, np.nansum(ours, axis=1), color=COLOURS[0], linewidth=0.9, label="packet engine")
        run = result.run
        panel.set_title(
            f"{run.flows} flow{'s' * (run.flows > 1)}, {run.rate_bps / 1e6:g} Mb/s, {run.base_rtt_s * 1e3:g} ms, "
            f"buffer {run.limit_packets} packets"
        )
        panel.set_xlim(0, linux.END_S)
        panel.set_ylim(0, 1.15 * float(np.nanmax(np.nansum(theirs, axis=1)[times_s > 2])))
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=2, loc="outside upper right", frameon=False)
    panels[-1].set_xlabel("Time (s)")
    figure.supylabel("cwnd (segments)", fontsize=8.5)
    return figure


def main() -> None:
    """Writes the page and its pictures."""
    results = [linux.simulate(run) for run in linux.recorded("summary")]
    results.sort(key=lambda result: (result.run.congestion, result.run.flows, result.run.limit_packets))
    place = DOCS / "concepts"
    style: Any = {**STYLE, "svg.hashsalt": "ackclock"}
    with mpl.rc_context(style):
        for congestion in congestions(results):
            own = [result for result in results if result.run.congestion == congestion]
            windows(own).savefig(place / f"agreement-{congestion}.svg", metadata={"Date": None})
    (place / "agreement.md").write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
