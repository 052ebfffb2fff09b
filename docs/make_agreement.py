"""Makes the page that compares the packet engine with recorded runs of Linux: a table, and the windows over each other.

Runs the settings of `tests/agreement` through the packet engine and writes `concepts/agreement.md` and a picture
for each congestion control into docs/; neither is kept in the repository. `make_agreement.py --prompt` first runs those
that do not agree through the guest kernel, with a receiver that reads at once, and keeps what it gave in
`tests/agreement/data/prompt.csv`: five minutes of CPU.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from statistics import median
from typing import Any

import claims
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from agreement import linux  # type: ignore[import-not-found] # noqa: E402

import ackclock as ac  # noqa: E402
from ackclock.figures.plots.style import COLOURS, STYLE  # noqa: E402

PROMPT = linux.DATA / "prompt.csv"

INTRODUCTION = """<!-- Made by docs/make_agreement.py: edit that. -->

# Agreement with recorded Linux runs

Forty-six recorded runs of Linux 6.1 (`tests/agreement/data`, which documents them), <!-- so:
csv("tests/agreement/data/summary.csv").height == 46 --> and the same settings in the packet engine with its `linux`
stack: goodput and queueing delay over 10–60 s, retransmissions over the whole run. The queueing delay is the mean
smoothed RTT less the base RTT on both sides. A run agrees if the goodput is within 2 % and the queueing delay within 10
% or 3 ms; `tests/agreement/test_linux.py` requires this of nine in ten, not counting the six in which the recording's
reader decides (below).

The engine is set up as the recordings were: a token bucket in the link's place (`burst = "1600B"`), a clock of 10 ms
where an algorithm uses the kernel's (`tick`, `tupdate`, `timer_tick`), and a receive window of 8 MiB.

"""

OTHER_SETTINGS = """
## Other rates, delays and buffers

Reno and CUBIC in settings from 1 to 100 Mb/s and 10 to 200 ms, with one, two, four and ten flows, over a Linux
link that does what the engine's own does: `netem rate` releases a packet when it has been transmitted. Sender and
receiver are served every millisecond there, and the socket buffers are large from the start. {count} agree; half of
them are within {goodput:.2%} of the goodput and {delay_ms:.1f} ms of the queueing delay.

"""

ALGORITHMS = """
## The other algorithms at other rates, delays and buffers

Eight congestion control algorithms over `pfifo`, Reno and CUBIC over the other qdiscs, DCTCP over a step marker,
from 5 to 100 Mb/s and 10 to 200 ms, over the token bucket. {count} agree.

"""

REMAINING = """
Many of those that differ depend on the recording's receiver, which reads every 5 ms, or every millisecond for the other
algorithms. The engine `linux` runs the same scenarios through the same kernel with a receiver that reads at once:

{table}
With that, {agree} of the {count} runs agree; at 20 Mb/s those of BIC, H-TCP, HighSpeed and Vegas, and Westwood's
two. <!-- so: {{row["run"].strip("`") for row in rows("a receiver that reads at once") if row["agrees"] == "yes"
and "-20M-50ms-" in row["run"]}} == {{"westwood-20M-50ms-8p-1x", "westwood-20M-50ms-25p-1x", "bic-20M-50ms-25p-1x",
"htcp-20M-50ms-8p-1x", "highspeed-20M-50ms-8p-1x", "vegas-20M-50ms-83p-1x"}} -->

At 100 Mb/s, 10 ms and 8 packets the recording's receiver holds ACKs back: its window is at the socket buffer's limit,
so data that wait to be read close it, and a read acknowledges pushed segments. What a flow gets then depends on how
often the receiver reads.

"""

CAUSES = """
## What differs, and why

Each cause was found by changing one thing at a time in Linux. The engine's runs are in the last line of each table.

"""

MECHANISMS = """
In order of importance:

- **A token bucket is not a link.** `htb` with a burst of 1600 B releases a packet as soon as its tokens are not
  overdrawn: at the beginning of its transmission, and after a pause a second one with it. Every packet of a busy period
  leaves up to two transmissions earlier than it could on a link of that rate: 1.2 ms at 20 Mb/s, 12 ms at 2
  Mb/s. <!-- so: [round(2 * 1514 * 8 / rate / 1e3, 1) for rate in (20, 2)] == [1.2, 12.1] --> At 20 Mb/s a link that
  transmits (`netem rate`) has a millisecond more of queueing delay and a per cent less of goodput. <!-- so:
  [round(number(link["queueing delay (ms)"]) - number(bucket["queueing delay (ms)"])) for bucket, link in [rows("## What
  differs")[:2]]] == [1] and 0.98 < number(rows("## What differs")[1]["goodput (Mb/s)"]) / number(rows("## What
  differs")[0]["goodput (Mb/s)"]) < 0.99 --> The engine's link transmits, unless the scenario gives it a `burst`.
- **The sender works in batches**, even with segmentation offload switched off in the devices: it forms packets of what
  the pacing rate sends in 1/1024 s, but at least two segments, and waits for the next ACK if that is due within 1 ms.
  At 20 Mb/s that is two segments, which the delayed ACKs cause anyway; at 100 Mb/s it is ten, which overflow a buffer
  of 20 packets sooner. <!-- so: (changed := csv("tests/agreement/data/mechanisms.csv")) is not None and (of := lambda
  run, change, column: changed.filter(run=run, change=change)[column][0]) and of("reno-100M-10ms-20p-1x", "no batches:
  one segment a packet from the sender", "goodput_bps") > 1.03 * of("reno-100M-10ms-20p-1x", "over the token bucket",
  "goodput_bps") --> The engine's stack `linux` does the same (`tso_batching`).
- **A pushed segment is acknowledged when the application reads.** Each batch ends with a push. An ACK that would wait
  for a second segment goes out with the application's next read, so ACKs fall back into step with the batches, and
  the mean round trip is shorter. <!-- so: all(of(run, "no immediate ACK of a pushed segment", "srtt_mean_s") > of(run,
  "over the token bucket", "srtt_mean_s") for run in ("reno-20M-50ms-8p-1x", "reno-100M-10ms-20p-1x",
  "cubic-100M-50ms-125p-10x")) -->
- **Receivers that read late bunch their ACKs.** A receive buffer that is still near its default of 128 KB has no room
  to offer until the application reads, and Linux then answers at the read. In the reference runs that is every
  5 ms, and ten flows then share less evenly than with large buffers. <!-- so: of("cubic-100M-50ms-125p-10x", "default
  receive buffer, read every 5 ms", "jain") < of("cubic-100M-50ms-125p-10x", "over the token bucket", "jain") - 0.05 -->
- **The kernel's clock ticks**, every 10 ms in these recordings (`HZ=100`). Timers run for whole ticks, and one
  more (`timer_tick`). An exact one of RACK's may send a retransmission into a queue that is still full, which can mean
  more retransmissions at low rates. CUBIC looks at its curve once a tick (`tick`). At 1 Mb/s the clock changes which
  packets are lost: with `HZ=1000` Linux has a queueing delay that is longer by 14 % there, and the engine's is 6 %
  above what it has by the slow clock. <!-- so: [round(number(found) / number(said(
  r"serialising link instead of the token bucket [|].*?[|] ([\\d.]+)")[-1]) - 1, 2) for found in (said(
  r"link, HZ=1000 [|].*?[|] ([\\d.]+)")[0], said(r"\\*packet engine\\*\\* [|].*?[|] ([\\d.]+)")[-1])] == [0.14,
  0.06] -->
- **While the advertised window grows, every segment is acknowledged at once**, which lasts through most of slow start
  and not for 16 segments only. Below 12 Mb/s, where two segments take longer than 2 ms, this decides whether `HyStart`
  sees a train of ACKs.
- **The first RTT sample** is longer in Linux, as the ARP reply passes the delay too; the mean forgets it.

A run of ten flows is one outcome of many: a millisecond's shift of one start changes who loses first, and with it the
shares and the number of retransmissions.
"""


def page(results: list[linux.Simulated]) -> str:
    """The page in Markdown."""
    text = f"{INTRODUCTION}{agreeing(results)} agree.\n\n{compared(results)}\n## Congestion windows\n\n"
    text += "Linux in grey, the packet engine in colour; of several flows the sum of the windows is drawn.\n\n"
    for name in pictures(results):
        text += f"![Congestion windows, {name}: Linux and the packet engine](agreement-{name}.svg)\n\n"
    return text + other_settings() + algorithms() + remaining() + CAUSES + mechanisms() + MECHANISMS


def agreeing(results: list[linux.Simulated]) -> str:
    """Return the number of results that agree."""
    return f"{sum(result.agrees for result in results)} of {len(results)}"


def compared(results: list[linux.Simulated]) -> str:
    """The runs side by side."""
    rows = (linux.row(result) for result in results)
    return table(linux.HEAD, [(f"`{name}`", *rest) for name, *rest in rows])


def other_settings() -> str:
    """Other settings, over a link that transmits."""
    results = [linux.simulate(run) for run in linux.recorded("serialising")]
    goodput = median(abs(result.goodput_difference) for result in results)
    delay_ms = 1e3 * median(abs(result.delay_difference_s) for result in results)
    return OTHER_SETTINGS.format(count=agreeing(results), goodput=goodput, delay_ms=delay_ms) + compared(results)


def algorithms() -> str:
    """The other algorithms in other settings, over the token bucket."""
    results = [linux.simulate(run) for run in linux.recorded("algorithms")]
    return ALGORITHMS.format(count=agreeing(results)) + compared(results)


def remaining() -> str:
    """Return the results that differ from their recording, and the kernel with a receiver that reads immediately."""
    recorded = {run.run: run for run in differing()}
    prompt = [run for run in linux.recorded("prompt") if run.run in recorded]
    results = [linux.Simulated(run, linux.simulate(recorded[run.run]).data) for run in prompt]
    head = ("run", "recorded (Mb/s)", "prompt reader", "here", "its queueing delay (ms)", "here", "its drops", "here")
    rows = [
        (
            f"`{result.run.run}`",
            f"{recorded[result.run.run].goodput_bps / 1e6:.2f}",
            f"{result.run.goodput_bps / 1e6:.2f}",
            f"{result.goodput_bps / 1e6:.2f}",
            f"{result.run.queueing_delay_s * 1e3:.2f}",
            f"{result.queueing_delay_s * 1e3:.2f}",
            f"{result.run.drops}",
            f"{result.drops}",
            "yes" if result.agrees else "no",
        )
        for result in results
    ]
    agree = sum(result.agrees for result in results)
    return REMAINING.format(table=table((*head, "agrees"), rows), agree=agree, count=len(results))


def differing() -> list[linux.Run]:
    """The runs over the token bucket that differ from their recording."""
    runs = [*linux.recorded("summary"), *linux.recorded("algorithms")]
    return [run for run in runs if not linux.simulate(run).agrees]


def record_prompt() -> None:
    """Runs those through the guest kernel, whose receivers read at once unless told otherwise, and keeps the result."""
    names = [each.name for each in fields(linux.Run) if each.name != "token_bucket"]
    with PROMPT.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(names)
        for run in differing():
            kernel = linux.Simulated(run, ac.run(ac.loads(run.scenario, f"{run.run}.toml").plan(), "linux", seeds=[1]))
            found = replace(
                run,
                goodput_bps=round(kernel.goodput_bps),
                jain=round(kernel.jain, 4),
                srtt_mean_s=round(kernel.queueing_delay_s + run.base_rtt_s, 6),
                drops=kernel.drops,
                retransmissions=kernel.retransmissions,
            )
            lines.writerow([getattr(found, name) for name in names])


def mechanisms() -> str:
    """Three settings in Linux with one thing changed at a time, and in the engine."""
    return "\n".join(changes(runs) for runs in linux.changed().values())


def changes(runs: list[tuple[str, linux.Run]]) -> str:
    """One setting's table."""
    setting = runs[0][1]
    own = linux.simulate(setting)
    rows = [
        (f"Linux, {change}", *measured(run.goodput_bps, run.queueing_delay_s, run.jain, run.retransmissions))
        for change, run in runs
    ]
    rows.append(("**packet engine**", *measured(own.goodput_bps, own.queueing_delay_s, own.jain, own.retransmissions)))
    head = (described(setting), "goodput (Mb/s)", "queueing delay (ms)", "Jain", "retransmissions")
    return table(head, rows)


def measured(goodput_bps: float, queueing_delay_s: float, jain: float, retransmissions: int) -> tuple[str, ...]:
    """The cells of a run."""
    return f"{goodput_bps / 1e6:.2f}", f"{queueing_delay_s * 1e3:.2f}", f"{jain:.2f}", f"{retransmissions}"


def described(run: linux.Run) -> str:
    """A setting in words."""
    return (
        f"{run.flows} {run.congestion} flow{'s' * (run.flows > 1)}, {run.rate_bps / 1e6:g} Mb/s, "
        f"{run.base_rtt_s * 1e3:g} ms, {run.queue}"
    )


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def pictures(results: list[linux.Simulated]) -> dict[str, list[linux.Simulated]]:
    """The runs of each picture: by congestion control over pfifo, and one for each control over the other queues."""
    chosen: dict[str, list[linux.Simulated]] = {}
    for result in results:
        run = result.run
        name = run.congestion if run.discipline == "pfifo" else f"{run.congestion}-queues"
        chosen.setdefault(name, []).append(result)
    return chosen


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
            f"{run.queue}"
        )
        panel.set_xlim(0, linux.END_S)
        panel.set_ylim(0, 1.15 * float(np.nanmax(np.nansum(theirs, axis=1)[times_s > 2])))
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=2, loc="outside upper right", frameon=False)
    panels[-1].set_xlabel("Time (s)")
    figure.supylabel("cwnd (segments)", fontsize=8.5)
    return figure


def main(arguments: Sequence[str]) -> None:
    """Writes the page and its pictures."""
    if "--prompt" in arguments:
        record_prompt()
    results = [linux.simulate(run) for run in linux.recorded("summary")]
    results.sort(key=lambda result: (result.run.discipline != "pfifo", result.run.run))
    place = DOCS / "concepts"
    style: Any = {**STYLE, "svg.hashsalt": "ackclock"}
    with mpl.rc_context(style):
        for name, own in pictures(results).items():
            windows(own).savefig(place / f"agreement-{name}.svg", metadata={"Date": None})
    claims.write(place / "agreement.md", page(results))


if __name__ == "__main__":
    main(sys.argv[1:])
