"""One bottleneck in the packet engine, described in a few words, for tests against closed forms."""

from __future__ import annotations

import ackclock as ac
from ackclock import metrics
from ackclock.dataset import Dataset

#: A link on which nothing queues: a full packet takes 1.2 ns.
ENDLESS_RATE = "10Tbit"

#: IP packet and Ethernet header of a full segment with timestamps.
MSS_BYTES, WIRE_BYTES = 1448, 1514

SCENARIO = """
duration = "{duration_s:.6f}s"
warmup = "{warmup_s:.6f}s"
[network]
topology = "dumbbell"
rate = "{rate}"
rtt = "{rtt_s:.6f}s"
queue = {queue}
{network}
[tcp]
{tcp}
[[flows]]
congestion = {congestion}
{flows}
[record]
interval = "{interval_s:.6f}s"
"""


def run(
    duration_s: float,
    rtt_s: float,
    congestion: str,
    *,
    warmup_s: float = 0.0,
    rate: str = ENDLESS_RATE,
    limit: str = "10000000p",
    queue: str | None = None,
    network: str = "",
    tcp: str = "",
    flows: str = "",
    interval_s: float | None = None,
    seeds: tuple[int, ...] = (1,),
) -> Dataset:
    """Runs it; `network`, `tcp` and `flows` are further lines of those tables, `congestion` and `queue` are TOML.

    Raises `ScenarioError` if the words do not make a scenario.
    """
    text = SCENARIO.format(
        duration_s=duration_s,
        warmup_s=warmup_s,
        rate=rate,
        rtt_s=rtt_s,
        queue=queue or f'{{ discipline = "pfifo", limit = "{limit}" }}',
        network=network,
        tcp=tcp,
        congestion=congestion,
        flows=flows,
        interval_s=interval_s or duration_s / 10,
    )
    return ac.run(ac.loads(text, "oracle.toml").plan(), seeds=seeds)


def goodput_bps(data: Dataset) -> float:
    """Payload that arrived in order after the warm-up, per second; the mean of the runs."""
    seconds = next(metrics.runs(data)).measured_s
    return float(data.flows["measured_bytes"].sum()) * 8 / seconds / len(data.runs)


def utilisation(data: Dataset) -> float:
    """Wire bytes that left the bottleneck after the warm-up, over what it could have carried; the mean of the runs."""
    seconds = next(metrics.runs(data)).measured_s
    link = data.links.filter(data.links["bottleneck"])
    return float((link["departed_bytes"] * 8 / link["rate_bps"]).mean()) / seconds  # type: ignore[arg-type]
