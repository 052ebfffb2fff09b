"""Losses that are no evidence of congestion, on short conversations of a sender with a window of ten datagrams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ackclock import judge, qlog
from ackclock.judge import Judgement

SIZE = 1200
RTT_S = 0.1


class Conversation:
    """A NewReno sender in slow start; the log has its window after each event."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.cwnd = 10 * SIZE
        self.number = 0
        self.records: list[dict[str, Any]] = [
            {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": {"vantage_point": {"type": "client"}}}
        ]
        self.log("recovery:parameters_set", {"max_datagram_size": SIZE})
        self.report()

    def log(self, name: str, data: dict[str, Any]) -> None:
        self.records.append({"time": self.now_s * 1e3, "name": name, "data": data})

    def report(self, cwnd: int | None = None) -> None:
        self.cwnd = self.cwnd if cwnd is None else cwnd
        rtt = {"smoothed_rtt": RTT_S * 1e3, "min_rtt": RTT_S * 1e3, "rtt_variance": 1}
        self.log("recovery:metrics_updated", {"congestion_window": self.cwnd, **rtt})

    def send(self, count: int, frame: str = "stream", kind: str = "1RTT") -> list[int]:
        numbers = list(range(self.number, self.number + count))
        for number in numbers:
            header = {"packet_type": kind, "packet_number": number}
            frames = [{"frame_type": frame}]
            self.log("transport:packet_sent", {"header": header, "raw": {"length": SIZE}, "frames": frames})
        self.number += count
        return numbers

    def ack(self, first: int, last: int, growth: int, kind: str = "1RTT") -> None:
        frame = {"frame_type": "ack", "acked_ranges": [[first, last]]}
        header = {"packet_type": kind, "packet_number": 0}
        self.log("transport:packet_received", {"header": header, "raw": {"length": 40}, "frames": [frame]})
        self.report(self.cwnd + growth * SIZE)

    def lose(self, number: int, kind: str = "1RTT", divisor: int = 1, trigger: str = "") -> None:
        header = {"packet_type": kind, "packet_number": number}
        self.log("recovery:packet_lost", {"header": header, "trigger": trigger})
        self.report(self.cwnd // divisor)

    def wait(self, seconds: float = RTT_S) -> None:
        self.now_s += seconds

    def fly(self, rounds: int = 1) -> None:
        """Send a window, and have it acknowledged a round trip later."""
        for _ in range(rounds):
            numbers = self.send(self.cwnd // SIZE)
            self.wait()
            self.ack(numbers[0], numbers[-1], len(numbers))

    def judge(self) -> Judgement:
        text = "".join(f"\x1e{json.dumps(record)}\n" for record in self.records)
        (connection,) = qlog.connections(qlog.parse(Path("doubt.sqlog"), text))
        return judge.judge_connection(connection, "reno")


def a_probe_timeout(divisor: int = 1) -> Conversation:
    """The last packet of a flight is not acknowledged; at the probe timeout it is logged as lost."""
    talk = Conversation()
    talk.fly()
    numbers = talk.send(20)
    talk.wait()
    talk.ack(numbers[0], numbers[-2], 19)
    talk.wait(0.3)
    talk.lose(numbers[-1], divisor=divisor)
    talk.wait(0.001)
    return talk


def test_a_loss_at_a_probe_timeout_is_no_congestion_event():
    talk = a_probe_timeout()
    talk.fly(2)
    result = talk.judge()
    assert result.deviations == []
    assert any("1 lost packet of probe timeouts" in note for note in result.notes)


def test_a_reduction_after_a_loss_at_a_probe_timeout_is_undecided():
    talk = a_probe_timeout(divisor=2)
    numbers = talk.send(10)
    talk.wait()
    talk.ack(numbers[0], numbers[-1], 1)
    result = talk.judge()
    assert result.deviations == []
    assert result.undecided > 0


def test_a_reduction_below_half_the_window_deviates_all_the_same():
    talk = a_probe_timeout(divisor=6)
    numbers = talk.send(5)
    talk.wait()
    talk.ack(numbers[0], numbers[-1], 1)
    assert [one.rule for one in talk.judge().deviations] == ["reduction"]


@pytest.mark.parametrize("kind", ["initial", "handshake"])
def test_a_loss_in_the_handshake_is_no_congestion_event(kind):
    talk = Conversation()
    numbers = talk.send(5, kind=kind)
    talk.wait()
    talk.ack(numbers[1], numbers[-1], 4, kind)
    talk.lose(numbers[0], kind)
    talk.wait(0.001)
    talk.fly(3)
    assert talk.judge().deviations == []


def test_the_loss_of_an_acknowledgement_is_no_congestion_event():
    talk = Conversation()
    talk.fly()
    (lone,) = talk.send(1, frame="ack")
    numbers = talk.send(19)
    talk.wait()
    talk.ack(numbers[0], numbers[-1], 19)
    talk.lose(lone)
    talk.wait(0.001)
    talk.fly(2)
    result = talk.judge()
    assert result.deviations == []
    assert not any("lost packet" in note for note in result.notes)


def test_a_loss_shown_by_a_later_acknowledgement_is_a_congestion_event():
    talk = Conversation()
    talk.fly()
    numbers = talk.send(20)
    talk.wait()
    talk.ack(numbers[1], numbers[-1], 19)
    talk.lose(numbers[0])
    talk.wait(0.001)
    talk.fly(2)
    assert "reduction" in {one.rule for one in talk.judge().deviations}


@pytest.mark.parametrize(("trigger", "rules"), [("reordering_threshold", {"reduction"}), ("pto_expired", set())])
def test_a_trigger_decides_where_no_later_packet_is_acknowledged(trigger, rules):
    talk = Conversation()
    talk.fly()
    numbers = talk.send(20)
    talk.wait()
    talk.ack(numbers[0], numbers[-2], 19)
    talk.lose(numbers[-1], trigger=trigger)
    talk.wait(0.001)
    talk.fly(2)
    assert rules <= {one.rule for one in talk.judge().deviations}
    assert rules or not talk.judge().deviations


def test_persistent_congestion_ends_the_recovery_period():
    """Packets sent before it was declared make the window grow: its recovery period is forgotten (section B.8)."""
    talk = Conversation()
    talk.fly()
    lost = talk.send(1)
    talk.wait(0.6)
    lost += talk.send(1)
    late = talk.send(12)
    talk.wait()
    (probe,) = talk.send(1)
    talk.wait()
    talk.ack(probe, probe, 0)
    for number in lost:
        talk.lose(number)
    talk.report(2 * SIZE)
    talk.wait(0.01)
    talk.ack(late[0], late[-1], 12)
    talk.fly(1)
    assert talk.judge().deviations == []
