"""Makes docs/concepts/aqm-rosetta.md: one trace of arrivals into each AQM, of every engine that has it.

    python docs/make_rosetta.py

A constant and a bursty source of UDP send the same datagrams at the same times whatever happens to them, so each engine
decides about the same packets. Takes a minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import claims
import numpy as np
import polars as pl

import ackclock as ac

PAGE = Path(__file__).resolve().parent / "concepts" / "aqm-rosetta.md"

SCENARIO = """
name = "One trace of arrivals"
duration = "30s"
seeds = {seeds}
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "20ms"
frame_overhead = "0B"
queue = {{ {queue} }}
[[traffic]]
kind = "udp"
packet = "972B"
rate = "1200/s"
[[traffic]]
kind = "udp"
packet = "972B"
rate = "2000/s"
burst = {{ packets = 600, every = "2s" }}
"""

#: Packets of the trace: 1200 a second, and 600 every two seconds.
ARRIVALS = 45_000

#: The transmission time of a packet of 1000 bytes: drops no farther apart than that are of one place in the queue.
PACKET_S = 0.8e-3

THRESHOLDS = 'limit = "1000p", min = "15KB", max = "45KB", avpkt = "1000B", probability = 0.1'
ADAPTED = 'limit = "1000p", min = "12500B", max = "37500B", avpkt = "1000B", probability = 0.1, adaptive = true'
AIMED = 'limit = "1000p", target = "20ms", avpkt = "1000B"'
OF_NS2 = "wait = true, spare_empty = true, gentle = true"

#: Queue → its keys, and the engines that it is compared with.
QUEUES = {
    "pfifo": ('discipline = "pfifo", limit = "50p"', ("ns2", "linux")),
    "RED of ns-2": (f'discipline = "red", {THRESHOLDS}, weight = 0.002, {OF_NS2}', ("ns2",)),
    "RED of ns-2, without the two": (f'discipline = "red", {THRESHOLDS}, weight = 0.002', ("ns2",)),
    "RED of tc": (f'discipline = "red", {THRESHOLDS}, burst = "30p"', ("linux",)),
    "ARED of ns-2": (f'discipline = "ared", {AIMED}, {OF_NS2}', ("ns2",)),
    "RED of tc that adapts": (f'discipline = "red", {ADAPTED}', ("linux",)),
    "ARED of tc": (f'discipline = "ared", {AIMED}, gentle = false', ("linux",)),
    "CoDel": ('discipline = "codel", limit = "1000p"', ("linux",)),
    "PIE": ('discipline = "pie", limit = "1000p"', ("linux",)),
}

TEXT = """<!-- Made by docs/make_rosetta.py: edit that. -->

# AQM Rosetta: one trace of arrivals, decisions compared

The same 45,000 packets of 1000 bytes, a constant 9.6 Mb/s and a burst of 600 packets every two seconds, arrive at a
link of 10 Mb/s in the packet engine, in ns-2 2.35 and in Linux 6.1. Nothing reacts to a drop, so what differs is the
queue's decisions alone.

- *Dropped*: the share of all packets.
- *Same drops*: the share of our drops for which the other engine has one too, within the transmission time of a packet.
  An engine's times are shifted by how much later than ours its FIFO drops the first packet.
  Two runs of ours with different seeds show what is left to chance: RED, ARED and PIE drop at random.

"""

READING = """
A FIFO draws no random numbers, and neither does CoDel: the FIFO drops the same packets everywhere, CoDel in the kernel
as many as in the packet engine. <!-- so: all(number(row["same drops"]) > 99.5 for row in rows("# AQM") if row["queue"]
== "pfifo") and all(row["dropped by ours"] == row["dropped by the other"] for row in rows("# AQM") if row["queue"] ==
"CoDel") -->

With `wait = true` and `spare_empty = true` RED and ARED drop as large a share as in ns-2, within 0.3 percentage points;
RED without them as in Linux, and the same packets as often as two seeds of one engine. <!-- so: all(abs(number(row[
"dropped by ours"]) - number(row["dropped by the other"])) < 0.3 for row in rows("# AQM") if row["queue"] in ("RED of "
"ns-2", "ARED of ns-2", "RED of tc")) and len({round(number(row["same drops"]) / 5) for row in rows("# AQM") if
row["queue"] == "RED of tc"}) == 1 --> These two are what ns-2's RED does and `tc`'s does not: drops are 1/p to 2/p
packets apart instead of 1 to 1/p, and a packet that finds the queue empty passes whatever the average. Without them
our RED drops far more of this trace than ns-2's: the average outlasts the queue. <!-- so: all(number(row[
"dropped by ours"]) > 1.3 * number(row["dropped by the other"]) for row in rows("# AQM") if row["queue"] == "RED of "
"ns-2, without the two" and row["compared with"] == "ns2") -->

*ARED of tc* is where two engines differ most. <!-- so: min(rows("# AQM"), key=lambda row: number(row["same drops"]))[
"queue"] == "ARED of tc" --> `tc` has no word for a weight: it takes one from its default burst, with which the average
forgets a burst far sooner than with the second that Floyd, Gummadi and Shenker (2001) give it and the packet engine
keeps. *RED of tc that adapts* has the same thresholds and the default burst in both engines, and they drop alike,
within half a percentage point. <!-- so: all(abs(number(row["dropped by ours"]) - number(row["dropped by the other"])) <
0.5 for row in rows("# AQM") if row["queue"] == "RED of tc that adapts") -->

`tests/agreement/test_ns2.py` compares the goodput of TCP over these queues with recorded runs of ns-2.
"""


def drops_s(engine: str, queue: str, seed: int) -> np.ndarray:
    """Return the times of the drops of one run, in seconds."""
    data = ac.run(ac.loads(SCENARIO.format(seeds=[seed], queue=queue)), engine=engine)
    return data.events.filter(pl.col("kind") == "drop")["time_s"].sort().to_numpy()


def shared(ours_s: np.ndarray, theirs_s: np.ndarray) -> float:
    """Return the share of drops of ours with one of theirs within a packet's time, each used once."""
    found = at = 0
    for time_s in ours_s:
        while at < len(theirs_s) and theirs_s[at] < time_s - PACKET_S:
            at += 1
        if at < len(theirs_s) and theirs_s[at] <= time_s + PACKET_S:
            found, at = found + 1, at + 1
    return found / len(ours_s)


def rows(lags_s: dict[str, float]) -> Iterator[Sequence[str]]:
    """Yield the cells of each comparison. `lags_s` gets the FIFO's: how much later an engine's packets arrive."""
    for name, (queue, others) in QUEUES.items():
        ours_s = drops_s("packet", queue, 1)
        runs = {"ours, another seed": drops_s("packet", queue, 2), **{each: drops_s(each, queue, 1) for each in others}}
        for other, found_s in runs.items():
            lag_s = lags_s.setdefault(other, float(found_s[0] - ours_s[0]))
            same = shared(ours_s, found_s - lag_s)
            shares = (len(times_s) / ARRIVALS for times_s in (ours_s, found_s))
            yield name, other, *(f"{100 * share:.2f} %" for share in shares), f"{100 * same:.1f} %"


def main() -> None:
    """Run all and write the page."""
    header = ("queue", "compared with", "dropped by ours", "dropped by the other", "same drops")
    table = [header, ("---", "---", "---:", "---:", "---:"), *rows({})]
    claims.write(PAGE, TEXT + "\n".join(f"| {' | '.join(row)} |" for row in table) + "\n" + READING)


if __name__ == "__main__":
    main()
