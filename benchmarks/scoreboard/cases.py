"""The scenarios of the scoreboard: single paths of all kinds, with captures at three points and the truth beside them.

Case *n* is drawn from the number *n* alone, so the first hundred stay what they are when there are more. Each is

    sender ── near ──[queue, rate, random loss]──▶ far ──┬── early ──┬── exit ── receiver
                                                         └── late ───┘

where `late` takes one of so many packets and delays it, which lets others pass; the way back is straight. The capture
in the middle is behind the queue, at a drawn share of the way.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from ackclock import _core

#: The controls of the cases, each in its turn.
CONTROLS = (
    *("abcc", "accucubic", "aimd", "bbr", "bbr3", "bic", "compound", "cubic", "dctcp", "fast"),
    *("highspeed", "htcp", "illinois", "ledbat", "lincubic", "reno", "scalable", "tahoe", "vegas", "westwood"),
)

#: Controls that the packet engine has gained since. Their cases have numbers of their own, so that the others stay as
#: they are.
SINCE = tuple(sorted(set(_core.CONGESTION_CONTROLS) - set(CONTROLS)))
FIRST_SINCE = 10_000

#: Bytes of a packet.
PACKET_BYTES = 1500

#: Limits of a case: simulated time, and packets at the bottleneck.
LONGEST_S, MOST_PACKETS = 60.0, 40_000

#: The vantage point in the middle of the path.
MIDDLE = "link:near>far"


@dataclass(frozen=True, slots=True)
class Case:
    """One of them: the scenario's text, and what was drawn.

    `loss` is the share of data that is lost at random, `late` that of packets that others overtake (0: none); `limit`
    is what limits the sender: "bulk" (nothing but the window), "application" or "receiver".
    """

    number: int
    text: str
    control: str
    rtt_s: float
    rate_bps: float
    loss: float
    late: float
    limit: str
    flows: int

    @property
    def name(self) -> str:
        """Return the name of its folder."""
        return f"case-{self.number:04}"


def case(number: int) -> Case:
    """Case *n*, from 0 on; the controls come in turn."""
    draw = random.Random(f"scoreboard {number}")
    rtt_s, rate_bps = _between(draw, 1e-3, 0.5), _between(draw, 1e6, 1e8)
    drawn = Case(
        number=number,
        text="",
        control=control(number),
        rtt_s=rtt_s,
        rate_bps=rate_bps,
        loss=_between(draw, 1e-4, 0.1) if draw.random() < 0.6 else 0.0,
        late=1 / round(_between(draw, 50, 500)) if draw.random() < 0.4 else 0.0,
        limit=draw.choice(["bulk", "bulk", "bulk", "application", "receiver"]),
        flows=draw.choice([1, 1, 2, 4]),
    )
    return Case(**{**{name: getattr(drawn, name) for name in Case.__slots__}, "text": _text(drawn, draw)})


def numbers(first: int, count: int, since: int) -> list[int]:
    """The numbers of so many cases from the first one on, and of so many for each control that came since."""
    if first + count > FIRST_SINCE:
        raise SystemExit(f"--first, --cases: found cases up to {first + count - 1}; expected less than {FIRST_SINCE}")
    begin = FIRST_SINCE + first * len(SINCE)
    return [*range(first, first + count), *range(begin, begin + since * len(SINCE))]


def control(number: int) -> str:
    """The control of a case."""
    turn, controls = (number, CONTROLS) if number < FIRST_SINCE else (number - FIRST_SINCE, SINCE)
    return controls[turn % len(controls)]


def _between(draw: random.Random, least: float, most: float) -> float:
    """Evenly on a scale of powers."""
    return math.exp(draw.uniform(math.log(least), math.log(most)))


def _text(drawn: Case, draw: random.Random) -> str:
    bdp_p = max(2, drawn.rate_bps * drawn.rtt_s / (8 * PACKET_BYTES))
    return "\n".join(
        [
            f'name = "Scoreboard, case {drawn.number}"',
            f'duration = "{_duration_s(drawn):.3f}s"',
            f"seeds = [{drawn.number + 1}]",
            *_network(drawn, bdp_p, draw),
            *_flows(drawn, bdp_p, draw),
            *_tcp(drawn, bdp_p, draw),
            "[record]",
            'interval = "10ms"',
            f'pcap = ["senders", "receivers", "{MIDDLE}"]',
            "",
        ]
    )


def _duration_s(drawn: Case) -> float:
    packets_per_s = drawn.rate_bps / (8 * PACKET_BYTES)
    return min(LONGEST_S, MOST_PACKETS / packets_per_s, max(5.0, 200 * drawn.rtt_s))


def _network(drawn: Case, bdp_p: float, draw: random.Random) -> list[str]:
    share = draw.uniform(0.1, 0.9)
    near_us, far_us = (max(1.0, 1e6 * part * drawn.rtt_s / 2) for part in (share, 1 - share))
    fast = f'rate = "{10 * drawn.rate_bps / 1e3:.0f}kbit"'
    plenty = 'queue = { discipline = "pfifo", limit = "10000p" }'
    limit_p = max(5, round(bdp_p * _between(draw, 0.2, 2.0)))
    queue = f'queue = {{ discipline = "pfifo", limit = "{limit_p}p" }}'
    loss = f", loss = {{ probability = {drawn.loss:.6f} }}" if drawn.loss else ""
    bottleneck = f'rate = "{drawn.rate_bps / 1e3:.0f}kbit", delay = "1us", {queue}, bottleneck = true{loss}'
    paths = round(1 / drawn.late) if drawn.late else 2
    late_us = 1 + draw.uniform(3, 30) * 8e6 * PACKET_BYTES / drawn.rate_bps
    nodes = ["near", "far", "exit", "late", "straight"]
    middle = f'{fast}, delay = "1us", {plenty}, one_way = true'
    ways = [f'{{ from = "far", to = "early-*", {middle} }}', f'{{ from = "early-*", to = "exit", {middle} }}']
    if drawn.late:
        delayed = f'{fast}, delay = "{late_us:.1f}us", {plenty}, one_way = true'
        ways += [f'{{ from = "far", to = "late", {middle} }}', f'{{ from = "late", to = "exit", {delayed} }}']
    return [
        "[network]",
        'topology = "graph"',
        'routing = "ecmp-packet"',
        "nodes = [",
        '    { name = "sender", host = true }, { name = "receiver", host = true },',
        *(f'    {{ name = "{name}" }},' for name in nodes if name != "late" or drawn.late),
        f'    {{ name = "early", count = {max(1, paths - 1)} }},',
        "]",
        "links = [",
        f'    {{ from = "sender", to = "near", {fast}, delay = "{near_us:.1f}us", {plenty} }},',
        f'    {{ from = "near", to = "far", {bottleneck}, one_way = true }},',
        *(f"    {way}," for way in ways),
        f'    {{ from = "exit", to = "straight", {middle} }},',
        f'    {{ from = "straight", to = "far", {middle} }},',
        f'    {{ from = "far", to = "near", {middle} }},',
        f'    {{ from = "exit", to = "receiver", {fast}, delay = "{far_us:.1f}us", {plenty} }},',
        "]",
    ]


def _flows(drawn: Case, bdp_p: float, draw: random.Random) -> list[str]:
    found = ["[[flows]]", 'from = "sender"', 'to = "receiver"', f"streams = {drawn.flows}"]
    found += [f'congestion = "{drawn.control}"', 'start = { jitter = "200ms" }']
    if drawn.limit == "application":
        found += [f'application_rate = "{draw.uniform(0.1, 0.7) * drawn.rate_bps / drawn.flows / 1e3:.1f}kbit"']
    elif draw.random() < 0.4:
        found += [f'size = "{_between(draw, 2e5, 5e6):.0f}B"']
    if draw.random() < 0.25:
        found += ['request = "300B"']
    return found


def _tcp(drawn: Case, bdp_p: float, draw: random.Random) -> list[str]:
    found = ["[tcp]", f'stack = "{draw.choice(["linux", "linux", "linux", "rfc", "freebsd", "windows"])}"']
    if drawn.limit == "receiver":
        window_p = max(4, bdp_p * draw.uniform(0.15, 0.6) / drawn.flows)
        found += [f'receive_window = "{window_p * PACKET_BYTES:.0f}B"']
    if draw.random() < 0.125:
        found += ["sack = false"]
    if draw.random() < 0.125:
        found += ["timestamps = false"]
    return found
