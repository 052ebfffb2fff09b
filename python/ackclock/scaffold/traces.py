"""Traces of links by models with published parameters: low-orbit satellites, Wi-Fi, the upstream of a cable modem.

Each model writes a CSV of time, rate and, where it has one, delay, which any link may follow (`scenario.traces`). The
same model, parameters and seed give the same bytes. What no source states is *ours*.

- **leo**: a satellite link whose satellite is chosen anew every 15 s (N. Mohan et al.: A Multifaceted Look at
  Starlink Performance, WWW 2024, section 5). Each has an RTT from the distribution that F. Michel et al. measured to
  servers in Europe (A First Look at Starlink Performance, IMC 2022): least 20 ms, quartiles 40, 50 and 60 ms; half of
  it is the trace's delay, so the scenario's `rtt` adds to it and may be 0. Ours: RTTs of up to 80 ms, straight lines
  between those points; rates of 50 to 250 Mb/s; a handover stops the link for 80 ms; none loses packets.
- **wifi**: the downlink of an IEEE 802.11n station with one stream of 20 MHz (MCS 0 to 7 with 800 ns of guard
  interval: IEEE Std 802.11-2016, table 19-27). A transmission is an A-MPDU; its time and that around it (DIFS,
  backoff, SIFS, block ACK) are those of T. Høiland-Jørgensen et al.: Ending the Anomaly, USENIX ATC 2017, section
  2.2.1. It has as many frames as fit into 4 ms, 65,535 bytes and 64 frames. Others contend: each of `stations` that
  always have data is as likely to be next. Ours: they send as long as this one; no collisions; the rate moves to a
  neighbour after 0.4 s in the mean, up more often than down below MCS 5.
- **docsis**: the upstream of a cable modem (DOCSIS 3.1) that shares its channel of 940 Mb/s by requests and grants,
  with the parameters of CableLabs' own model (docsis-ns3): a MAP interval of 2 ms has one grant, at a random place in
  it (ours: in its middle 80 %), of what the service's rate allows in an interval; a request that goes with the grant
  of one interval is served in the next but one, so packets have two intervals of delay in addition to the wait for a
  grant. That is a media acquisition delay of 4 to 8 ms, of the 2 to 8 ms that CableLabs states (G. White et al.: Low
  Latency DOCSIS, 2019). Ours: the modem always has as much to send as it is granted, and grants that it does not use
  are lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import TypeAlias

#: Wire bytes of a full packet: 1500 bytes and an Ethernet header, as links count it.
PACKET_BYTES = 1514

#: A line: time in seconds, rate in bit/s, and the one-way delay in seconds, if the trace has delays. The last line is
#: the end, without a rate.
Line: TypeAlias = tuple[float, float | None, float | None]


@dataclass(frozen=True, slots=True)
class Settings:
    """Parameters of all models.

    Attributes:
        duration_s: length of the trace, which then repeats, in seconds.
        seed: of the random numbers.
        stations: other stations that contend (wifi).
        rate_bps: rate of the service, in bit/s (docsis).
    """

    duration_s: float
    seed: int = 1
    stations: int = 2
    rate_bps: float = 20e6


# ---- leo ----

SLOT_S, HANDOVER_S = 15.0, 0.08

#: Shares of the slots with at most such an RTT, in seconds.
RTTS = ((0.0, 0.020), (0.25, 0.040), (0.5, 0.050), (0.75, 0.060), (1.0, 0.080))

#: Least and greatest rate of a satellite, in bit/s.
SATELLITE_BPS = (50e6, 250e6)


def leo(settings: Settings) -> Iterator[Line]:
    """Yield the lines of a low-orbit satellite link, of whole slots."""
    random = Random(settings.seed)
    for slot in range(math.ceil(settings.duration_s / SLOT_S)):
        share = random.random()
        (low, low_s), (high, high_s) = next((one, next_one) for one, next_one in pairwise(RTTS) if share <= next_one[0])
        delay_s = round((low_s + (high_s - low_s) * (share - low) / (high - low)) / 2, 4)
        yield slot * SLOT_S, 0.0, delay_s
        yield slot * SLOT_S + HANDOVER_S, random.uniform(*SATELLITE_BPS), delay_s
    yield (slot + 1) * SLOT_S, None, delay_s


# ---- wifi ----

#: Rates of MCS 0 to 7, in bit/s; the one that most dwell around.
MCS_BPS, USUAL_MCS = (6.5e6, 13e6, 19.5e6, 26e6, 39e6, 52e6, 58.5e6, 65e6), 5

#: Mean time at a rate, in seconds, and the chance that the next is higher, at most and above the usual one.
DWELL_S, UP_BELOW, UP_ABOVE = 0.4, 0.7, 0.4

#: An aggregate: bytes of a frame with headers, delimiter and padding; most bytes, frames and seconds (Linux's).
MPDU_BYTES, MAX_BYTES, MAX_FRAMES, MAX_AIRTIME_S = 1544, 65_535, 64, 4e-3

#: Times of the standard in seconds: preamble and header, DIFS, SIFS, a slot; slots of the smallest contention window;
#: the bytes of a block ACK.
PHY_S, DIFS_S, SIFS_S, SLOT_TIME_S, WINDOW_SLOTS, ACK_BYTES = 32e-6, 34e-6, 16e-6, 9e-6, 15, 58


def aggregate(rate_bps: float) -> int:
    """Return the most frames of an aggregate at a rate in bit/s."""
    by_time = int((MAX_AIRTIME_S - PHY_S) * rate_bps / (8 * MPDU_BYTES))
    return max(1, min(MAX_FRAMES, MAX_BYTES // MPDU_BYTES, by_time))


def data_s(frames: float, rate_bps: float) -> float:
    """Return how long an aggregate is on the air, in seconds, at a rate in bit/s."""
    return PHY_S + 8 * MPDU_BYTES * frames / rate_bps


def overhead_s(rate_bps: float, backoff_slots: float = WINDOW_SLOTS / 2) -> float:
    """Return the time around an aggregate, in seconds: DIFS, backoff, SIFS, and SIFS with the block ACK."""
    return DIFS_S + backoff_slots * SLOT_TIME_S + SIFS_S + SIFS_S + 8 * ACK_BYTES / rate_bps


def wifi(settings: Settings) -> Iterator[Line]:
    """Yield the lines of a Wi-Fi station's downlink."""
    random = Random(settings.seed)
    time_s, mcs, next_s = 0.0, USUAL_MCS, 0.0
    while time_s < settings.duration_s:
        if time_s >= next_s:
            is_up = random.random() < (UP_BELOW if mcs < USUAL_MCS else UP_ABOVE)
            mcs = min(max(mcs + (1 if is_up else -1), 0), len(MCS_BPS) - 1)
            next_s = time_s + random.expovariate(1 / DWELL_S)
        rate_bps = MCS_BPS[mcs]
        frames = aggregate(rate_bps)
        sending_s = data_s(frames, rate_bps)
        before_s = overhead_s(rate_bps, random.randint(0, WINDOW_SLOTS))
        while random.random() >= 1 / (settings.stations + 1):  # another one is next
            before_s += sending_s + overhead_s(rate_bps)
        yield time_s, 0.0, None
        yield time_s + before_s, 8 * PACKET_BYTES * frames / sending_s, None
        time_s += before_s + sending_s
    yield time_s, None, None


# ---- docsis ----

#: A MAP interval in seconds, rate of the channel in bit/s (1880 subcarriers of 50 kHz, 10 bit/s/Hz), and the intervals
#: from a request to its grant.
MAP_S, CHANNEL_BPS, INTERVALS = 2e-3, 940e6, 2


def docsis(settings: Settings) -> Iterator[Line]:
    """Yield the lines of a cable modem's upstream."""
    random = Random(settings.seed)
    grant_s = MAP_S * settings.rate_bps / CHANNEL_BPS
    delay_s = INTERVALS * MAP_S
    yield 0.0, 0.0, delay_s
    for interval in range(math.ceil(settings.duration_s / MAP_S)):
        begin_s = interval * MAP_S + random.uniform(0.1, 0.9) * (MAP_S - grant_s)
        yield begin_s, CHANNEL_BPS, delay_s
        yield begin_s + grant_s, 0.0, delay_s
    yield (interval + 1) * MAP_S, None, delay_s


#: The models by their names.
MODELS: dict[str, Callable[[Settings], Iterator[Line]]] = {"docsis": docsis, "leo": leo, "wifi": wifi}


def csv(model: str, settings: Settings) -> str:
    """Return a model's trace as a CSV. Its last line is the end, after which the trace repeats."""
    lines = list(MODELS[model](settings))
    has_delays = lines[0][2] is not None
    rows = ["time_s,rate_bps,delay_s" if has_delays else "time_s,rate_bps"]
    for time_s, rate_bps, delay_s in lines:
        fields = [f"{time_s:.9f}".rstrip("0").rstrip("."), "" if rate_bps is None else f"{rate_bps:.0f}"]
        rows.append(",".join([*fields, "" if rate_bps is None else f"{delay_s:g}"] if has_delays else fields))
    return "\n".join([*rows, ""])
