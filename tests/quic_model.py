"""A small model of a QUIC sender behind a drop-tail queue, which writes a qlog; written from the RFCs' pseudocode.

It shares no code with the project: NewReno is appendix B of RFC 9002, CUBIC sections 4.2 to 4.7 of RFC 9438, both in
bytes. A mutation is a mistake that real implementations have made. Packets of one size wait in a queue before a link;
each second one is acknowledged; a packet is lost when three later ones were acknowledged (RFC 9002 section 6.1.1), or
after a probe timeout. The application pauses at times, and writes little at others.
"""

from __future__ import annotations

import heapq
import itertools
import json
from dataclasses import dataclass, field
from typing import Any

MSS = 1200

#: Mutation → the rules of which the judge must report one.
MUTATIONS = {
    "beta-high": {"reduction"},
    "beta-low": {"reduction", "second-reduction"},
    "no-reduction": {"reduction", "recovery-growth"},
    "no-slow-start-exit": {"slow-start-exit"},
    "fast-avoidance": {"avoidance"},
    "no-avoidance": {"avoidance"},
    "growth-while-unused": {"application-limited"},
    "growth-in-recovery": {"recovery-growth", "reduction"},
    "probe-timeout-collapse": {"probe-timeout"},
    "reduction-per-loss": {"second-reduction"},
    "ecn-ignored": {"ecn", "recovery-growth"},
    "pacing-gain": {"pacing"},
    "window-ignored": {"in-flight"},
    "large-initial-window": {"initial-window"},
    "slow-start-triples": {"slow-start"},
    "collapse-at-loss": {"reduction", "second-reduction", "minimum-window"},
}


#: Mutations whose window grows without bound: their logs are short.
RUNAWAY = ("no-reduction", "no-slow-start-exit")


class NewReno:
    """RFC 9002 appendix B."""

    beta = 0.5

    def __init__(self, mutation: str) -> None:
        self.mutation = mutation
        self.cwnd = 10.0 * MSS * (4 if mutation == "large-initial-window" else 1)
        self.ssthresh = float("inf")
        self.recovery_start = -1.0
        if mutation in ("beta-high", "beta-low"):
            self.beta = self.beta + 0.15 if mutation == "beta-high" else self.beta - 0.2

    def on_ack(self, now: float, sent: float, srtt: float, used: bool) -> None:
        if not used and self.mutation != "growth-while-unused":
            return
        if sent <= self.recovery_start:
            self.cwnd += MSS if self.mutation == "growth-in-recovery" else 0  # inflated as in RFC 5681, and kept
            return
        if self.cwnd < self.ssthresh or self.mutation == "no-slow-start-exit":
            self.cwnd += MSS * (2 if self.mutation == "slow-start-triples" else 1)
        else:
            self.avoid(now, srtt)

    def avoid(self, now: float, srtt: float) -> None:
        factor = {"fast-avoidance": 4.0, "no-avoidance": 0.0}.get(self.mutation, 1.0)
        self.cwnd += factor * MSS * MSS / self.cwnd

    def on_congestion(self, now: float, sent: float, marked: bool) -> bool:
        if self.mutation == "no-reduction" or (marked and self.mutation == "ecn-ignored"):
            return False
        if sent <= self.recovery_start and self.mutation != "reduction-per-loss":
            return False
        self.recovery_start = now
        self.reduce()
        if self.mutation == "collapse-at-loss":
            self.cwnd = 2.0 * MSS
        return True

    def reduce(self) -> None:
        self.ssthresh = max(self.cwnd * self.beta, 2.0 * MSS)
        self.cwnd = self.ssthresh


class Cubic(NewReno):
    """RFC 9438; times in seconds, windows in bytes."""

    beta = 0.7
    c = 0.4

    def __init__(self, mutation: str) -> None:
        super().__init__(mutation)
        self.w_max = 0.0
        self.prior = 0.0
        self.epoch: float | None = None
        self.k = self.w_est = 0.0

    def avoid(self, now: float, srtt: float) -> None:
        if self.mutation == "no-avoidance":
            return
        c = self.c * (8.0 if self.mutation == "fast-avoidance" else 1.0)
        if self.epoch is None:
            self.epoch = now
            self.k = (max(0.0, self.w_max - self.cwnd) / MSS / c) ** (1 / 3)
            self.w_max = max(self.w_max, self.cwnd)
            self.w_est = self.cwnd
        t = now - self.epoch
        alpha = 1.0 if self.w_est >= self.prior else 3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        self.w_est += alpha * MSS * MSS / self.cwnd
        if self.w_max + c * MSS * (t - self.k) ** 3 < self.w_est:
            self.cwnd = max(self.cwnd, self.w_est)
            return
        target = self.w_max + c * MSS * (t + srtt - self.k) ** 3
        target = min(max(target, self.cwnd), 1.5 * self.cwnd)
        self.cwnd += (target - self.cwnd) * MSS / self.cwnd

    def reduce(self) -> None:
        below = self.cwnd < self.w_max
        self.prior = self.cwnd
        self.w_max = self.cwnd * (1.0 + self.beta) / 2.0 if below else self.cwnd
        self.epoch = None
        super().reduce()


@dataclass
class World:
    """The network, the application and what happens when."""

    rate_bps: float = 6e6
    rtt_s: float = 0.04
    buffer_p: int = 20
    duration_s: float = 12.0
    #: The application writes only a packet each so many seconds, in these times.
    slow: tuple[tuple[float, float], ...] = ((4.0, 7.0),)
    slow_interval_s: float = 0.01
    #: The application writes nothing in these times, and the last packet before is lost.
    pauses: tuple[tuple[float, float], ...] = ((8.6, 9.2),)
    #: Packets sent at the beginning of these times are marked.
    marks: tuple[float, ...] = (11.0,)


@dataclass
class Sender:
    """One connection; `records` are its log."""

    controller: NewReno
    world: World
    records: list[dict[str, Any]] = field(default_factory=list)
    heap: list[tuple[float, int, str, Any]] = field(default_factory=list)
    flight: dict[int, float] = field(default_factory=dict)
    number: int = 0
    largest: int = -1
    busy_until: float = 0.0
    srtt: float = 0.0
    min_rtt: float = 0.0
    credit_at: float = 0.0
    ce: int = 0
    handled_ce: int = 0
    pushed: int = 0
    pending: list[int] = field(default_factory=list)

    def run(self) -> list[dict[str, Any]]:
        self.log(0.0, "recovery:parameters_set", {"max_datagram_size": MSS})
        self.report(0.0)
        self.send(0.0)
        for at in (*(end for _, end in self.world.pauses), *self._ticks()):
            self.push(at, "send", None)
        for begin, _ in self.world.pauses:
            self.push(begin + 0.25, "pto", None)
        while self.heap:
            now, _, what, value = heapq.heappop(self.heap)
            if now > self.world.duration_s:
                break
            getattr(self, f"on_{what}")(now, value)
        return self.records

    def _ticks(self) -> list[float]:
        return [
            begin + n * self.world.slow_interval_s
            for begin, end in self.world.slow
            for n in range(int((end - begin) / self.world.slow_interval_s) + 2)
        ]

    def push(self, at: float, what: str, value: Any) -> None:
        self.pushed += 1
        heapq.heappush(self.heap, (at, self.pushed, what, value))

    def log(self, now: float, name: str, data: dict[str, Any]) -> None:
        self.records.append({"time": round(now * 1e3, 6), "name": name, "data": data})

    def report(self, now: float) -> None:
        gain = 5.0 if self.controller.mutation == "pacing-gain" else 1.25
        data = {"congestion_window": int(self.controller.cwnd), "bytes_in_flight": MSS * len(self.flight)}
        if self.srtt:
            data |= {"smoothed_rtt": self.srtt * 1e3, "min_rtt": self.min_rtt * 1e3}
            data |= {"pacing_rate": int(gain * 8 * self.controller.cwnd / self.srtt)}
        self.log(now, "recovery:metrics_updated", data)

    def has_data(self, now: float) -> bool:
        if any(begin <= now < end for begin, end in self.world.pauses):
            return False
        if any(begin <= now < end for begin, end in self.world.slow):
            if now < self.credit_at:
                return False
            self.credit_at = now + self.world.slow_interval_s * 0.999
        return True

    def on_send(self, now: float, _: Any) -> None:
        self.send(now)

    def send(self, now: float) -> None:
        allowed = self.controller.cwnd * (1.5 if self.controller.mutation == "window-ignored" else 1.0)
        while MSS * (len(self.flight) + 1) <= allowed and self.has_data(now):
            self.transmit(now, probe=False)

    def transmit(self, now: float, *, probe: bool) -> None:
        number, self.number = self.number, self.number + 1
        self.flight[number] = now
        data: dict[str, Any] = {
            "header": {"packet_type": "1RTT", "packet_number": number},
            "raw": {"length": MSS},
            "frames": [{"frame_type": "stream", "stream_id": 0, "offset": number * 1100, "length": 1100}],
        }
        self.log(now, "transport:packet_sent", {**data, "trigger": "pto_probe"} if probe else data)
        service = 8.0 * MSS / self.world.rate_bps
        queued = max(0.0, self.busy_until - now) / service
        is_tail = any(begin - 0.05 <= now < begin for begin, _ in self.world.pauses)
        if queued >= self.world.buffer_p or is_tail:
            return
        self.busy_until = max(self.busy_until, now) + service
        marked = any(at <= now < at + 0.01 for at in self.world.marks)
        self.push(self.busy_until + self.world.rtt_s, "arrival", (number, marked))

    def on_arrival(self, now: float, value: tuple[int, bool]) -> None:
        number, marked = value
        self.pending.append(number)
        self.ce += marked
        if len(self.pending) < 2 and not marked and number in self.flight and number % 2 == 0:
            self.push(now + 0.005, "ack", None)
            return
        self.on_ack(now, None)

    def on_ack(self, now: float, _: Any) -> None:
        acked = [number for number in self.pending if number in self.flight]
        self.pending.clear()
        if not acked:
            return
        used = MSS * (len(self.flight) + 1) > self.controller.cwnd
        self.measure(now - self.flight[max(acked)])
        frame: dict[str, Any] = {"frame_type": "ack", "acked_ranges": [[number, number] for number in acked]}
        if self.ce:
            frame["ce"] = self.ce
        header = {"packet_type": "1RTT", "packet_number": 0}
        self.log(now, "transport:packet_received", {"header": header, "raw": {"length": 40}, "frames": [frame]})
        newest = self.flight[max(acked)]
        for number in acked:
            self.controller.on_ack(now, self.flight.pop(number), self.srtt, used)
        self.largest = max(self.largest, *acked)
        self.detect(now)
        if self.ce > self.handled_ce:
            self.handled_ce = self.ce
            self.controller.on_congestion(now, newest, marked=True)
        self.report(now)
        self.send(now)

    def measure(self, rtt: float) -> None:
        self.min_rtt = min(self.min_rtt or rtt, rtt)
        self.srtt = rtt if not self.srtt else 0.875 * self.srtt + 0.125 * rtt

    def detect(self, now: float) -> None:
        late = list(itertools.takewhile(lambda number: number <= self.largest - 3, self.flight))
        for number in late:
            sent = self.flight.pop(number)
            header = {"packet_type": "1RTT", "packet_number": number}
            self.log(now, "recovery:packet_lost", {"header": header, "trigger": "reordering_threshold"})
            self.controller.on_congestion(now, sent, marked=False)

    def on_pto(self, now: float, _: Any) -> None:
        if not self.flight:
            return
        self.log(now, "recovery:loss_timer_updated", {"event_type": "expired", "timer_type": "pto"})
        if self.controller.mutation == "probe-timeout-collapse":
            self.controller.cwnd = 3.0 * MSS
            self.report(now)
        self.transmit(now, probe=True)


HEADER = {
    "qlog_version": "0.3",
    "qlog_format": "JSON-SEQ",
    "trace": {"vantage_point": {"type": "server"}, "title": "model", "common_fields": {"time_format": "relative"}},
}


def log(kind: str, mutation: str = "", world: World | None = None) -> str:
    """Return the log of a connection as JSON-SEQ."""
    controller = {"reno": NewReno, "cubic": Cubic}[kind](mutation)
    seconds = 2.0 if mutation in RUNAWAY else 12.0
    records = Sender(controller, world or World(duration_s=seconds)).run()
    return "".join(f"\x1e{json.dumps(record)}\n" for record in [HEADER, *records])
