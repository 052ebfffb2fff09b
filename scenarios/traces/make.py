"""Makes the traces beside it: `python scenarios/traces/make.py`. The same bytes each time.

They are synthetic. Each follows a small model of our own, with parameters from what is cited; none is a recording.

- `cellular.csv`, and `cellular.mahimahi`, which delivers what the first third of it carries: the rate of a mobile link
  as K. Winstein, A. Sivaraman and H. Balakrishnan model it (Stochastic Forecasts Achieve High Throughput and Low Delay
  over Cellular Networks, NSDI 2013, section 3.1): opportunities come as a Poisson process, whose rate is a Brownian
  motion of 200 packets/s per square root of a second between 0 and 1000 packets/s. An outage, once begun, ends at a
  rate of 1 per second. Ours: it begins in the middle, and steps last 100 ms.
- `wifi.csv`: a station of IEEE 802.11n that changes its modulation: MCS 0 to 7 with one stream, 20 MHz and 800 ns of
  guard interval (IEEE Std 802.11-2016, table 19-27). Ours: of these rates 65 % are left for packets (access to the
  medium, headers, acknowledgements); it moves to a neighbouring rate after 0.4 s in the mean, up more often than down
  while it is below MCS 5; and 50 ms of scanning stop it every 10 s.
- `satellite.csv`: a low-orbit link whose satellite is chosen anew every 15 s (N. Mohan et al.: A Multifaceted Look at
  Starlink Performance, WWW 2024, section 5). Ours: each gives 20 to 60 Mb/s, and a handover takes 80 ms.
- `low-orbit.csv`, which lies with the scenarios of `ackclock evaluate`: such a link with another RTT for each
  satellite, of which 10 ms are not the trace's. Its median and upper end are those that SpaceX published for the peak
  hours of the United States (Improving Starlink's Latency, March 2024): 33 and 65 ms. Ours: uniform on either side of
  the median, from 25 ms on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
EVALUATION = HERE.parents[1] / "python/ackclock/evaluate/scenarios/traces"

#: Wire bits of a full packet: 1500 bytes and an Ethernet header.
PACKET_BITS = 8 * 1514

STEP_S = 0.1
LENGTH_S, OPPORTUNITIES_S = 60.0, 20.0
NOISE, MOST_HZ, ESCAPES_HZ = 200.0, 1000.0, 1.0

#: Rates of IEEE 802.11n, in Mb/s.
MCS_MBPS = (6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0)
SHARE, DWELL_S, USUAL = 0.65, 0.4, 5
SCAN_EVERY_S, SCAN_S = 10.0, 0.05

SLOT_S, HANDOVER_S, SLOTS = 15.0, 0.08, 8
SATELLITE_MBPS = (20.0, 60.0)

#: Least, median and greatest RTT, in ms, and the part of it that is not the trace's.
LEAST_MS, MEDIAN_MS, GREATEST_MS, OTHER_MS = 25.0, 33.0, 65.0, 10.0


def cellular(random: Random) -> Iterator[tuple[float, float]]:
    """Times in seconds and rates in packets per second."""
    rate, out = MOST_HZ / 2, False
    for step in range(round(LENGTH_S / STEP_S)):
        yield step * STEP_S, rate
        if out and random.random() >= ESCAPES_HZ * STEP_S:
            continue
        rate = min(max(rate + random.gauss(0.0, NOISE * STEP_S**0.5), 0.0), MOST_HZ)
        out = rate == 0.0


def opportunities(random: Random, rates: list[tuple[float, float]]) -> Iterator[int]:
    """Milliseconds of a Poisson process with these rates; the last is the period."""
    for begin_s, rate in rates:
        time_s = begin_s
        while rate > 0 and (time_s := time_s + random.expovariate(rate)) < begin_s + STEP_S:
            yield round(1000 * time_s)
    yield round(1000 * OPPORTUNITIES_S)


def wifi(random: Random) -> Iterator[tuple[float, float]]:
    """Times in seconds and rates in bit/s."""
    time_s, scan_s, rate = 0.0, SCAN_EVERY_S, USUAL
    while time_s < LENGTH_S:
        yield time_s, 1e6 * SHARE * MCS_MBPS[rate]
        left_s = max(0.01, round(random.expovariate(1 / DWELL_S), 2))
        if time_s + left_s >= scan_s < LENGTH_S:
            yield scan_s, 0.0
            time_s, scan_s = scan_s + SCAN_S, scan_s + SCAN_EVERY_S
            continue
        time_s += left_s
        up = random.random() < (0.7 if rate < USUAL else 0.4)
        rate = min(max(rate + (1 if up else -1), 0), len(MCS_MBPS) - 1)


def satellite(random: Random) -> Iterator[tuple[float, float]]:
    """Times in seconds and rates in bit/s."""
    for slot in range(SLOTS):
        yield slot * SLOT_S, 0.0
        yield slot * SLOT_S + HANDOVER_S, 1e6 * round(random.uniform(*SATELLITE_MBPS), 1)


def low_orbit(random: Random) -> Iterator[str]:
    """The lines of a trace with rates and one-way delays."""
    yield "time_s,rate_mbps,delay_ms"
    for slot in range(SLOTS):
        ends = (LEAST_MS, MEDIAN_MS) if random.random() < 0.5 else (MEDIAN_MS, GREATEST_MS)
        delay_ms = round((random.uniform(*ends) - OTHER_MS) / 2, 1)
        yield f"{slot * SLOT_S:g},0,{delay_ms:g}"
        yield f"{slot * SLOT_S + HANDOVER_S:g},{random.uniform(*SATELLITE_MBPS):.1f},{delay_ms:g}"
    yield f"{SLOTS * SLOT_S:g},,"


def write(name: str, lines: Iterator[str], folder: Path | None = None) -> None:
    """A file of lines."""
    ((folder or HERE) / name).write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def csv(steps: Iterator[tuple[float, float]], end_s: float) -> Iterator[str]:
    """The header, a line for each step, and the end."""
    yield "time_s,rate_bps"
    for time_s, rate_bps in steps:
        yield f"{round(time_s, 3):g},{round(rate_bps)}"
    yield f"{end_s:g},"


def main() -> None:
    """All files."""
    rates = list(cellular(Random(1)))
    write("cellular.csv", csv(((time_s, rate * PACKET_BITS) for time_s, rate in rates), LENGTH_S))
    third = rates[: round(OPPORTUNITIES_S / STEP_S)]
    write("cellular.mahimahi", map(str, opportunities(Random(2), third)))
    write("wifi.csv", csv(wifi(Random(3)), LENGTH_S))
    write("satellite.csv", csv(satellite(Random(4)), SLOTS * SLOT_S))
    write("low-orbit.csv", low_orbit(Random(5)), EVALUATION)


if __name__ == "__main__":
    main()
