from dataclasses import replace

import pytest

from ackclock.figures.summary_text import Subject, comparison_sentences, result_sentences
from ackclock.metrics import Summary


def subject(name: str = "a", *, flows: int = 10, seeds: int = 5, half: float = 0.0, **means: float) -> Subject:
    summaries = {key: Summary(mean, mean - half, mean + half, seeds) for key, mean in means.items()}
    return Subject(name, summaries, flows, seeds, 1e8, 0.1, 8e6, 11e6)


FULL = {
    "utilisation": 0.994,
    "goodput_bps": 95.1e6,
    "jain": 0.991,
    "queue_delay_mean_s": 0.0612,
    "queue_delay_p95_s": 0.0985,
    "loss_rate": 0.00123,
    "congestion_epochs": 12.4,
    "synchronisation": 0.81,
}


def test_the_complete_result() -> None:
    assert result_sentences(subject(**FULL)) == [
        "Ten flows shared the bottleneck: together they used 99.4 % of its 100 Mb/s and delivered 95.1 Mb/s of data.",
        "The shares of like flows were close to equal (Jain's index 0.991): the slowest flow got 8.00 Mb/s, "
        "the fastest 11.0 Mb/s.",
        "Packets waited 61.2 ms on average in the queue, 95 % of them at most 98.5 ms, "
        "on top of 100 ms of base round-trip time.",
        "It lost 0.12 % of the packets, in 12.4 congestion epochs a run, "
        "each of which hit 81 % of the flows on average.",
        "Values are means over five runs with different seeds; the intervals below are 95 % confidence intervals.",
    ]


def test_one_flow_single_does_not_share() -> None:
    message = result_sentences(subject(flows=1, seeds=1, **FULL))
    assert message[0].startswith("One flow had the bottleneck to itself: it used 99.4 %")
    assert not any("Jain" in sentence for sentence in message)
    assert message[-1].startswith("This is one run")


def test_several_bottlenecks_and_udp_are_named() -> None:
    several = replace(subject(**FULL), bottlenecks=96, limiting=("",) * 40, rate_bps=9.6e9)
    assert result_sentences(several)[0].startswith(
        "Ten flows shared 40 of 96 links that may limit flows: together they used 99.4 % of their 9.60 Gb/s"
    )
    beside = replace(subject(flows=1, **FULL), datagrams=1)
    assert result_sentences(beside)[0] == (
        "One flow shared the bottleneck with one UDP flow: together they used 99.4 % of its 100 Mb/s "
        "and delivered 95.1 Mb/s of TCP data."
    )
    alone = replace(subject(flows=1, **FULL), bottlenecks=2, limiting=("up", "down"))
    assert result_sentences(alone)[0].startswith(
        "One flow crossed up and down (two links of 2 that limited flows): it used 99.4 % of their 100 Mb/s"
    )


def test_what_is_not_given_is_not_reported() -> None:
    assert result_sentences(subject(flows=2, goodput_bps=5e6))[0] == (
        "Two flows shared the bottleneck: together they delivered 5.00 Mb/s of data."
    )
    assert "No packet was lost there." in result_sentences(subject(loss_rate=0.0))


@pytest.mark.parametrize(("half", "clear"), [(0.001, True), (0.004, False)])
def test_only_clear_differences_are_called_so(half: float, clear: bool) -> None:
    pair = [subject("short", half=half, queue_delay_mean_s=0.010), subject("long", half=half, queue_delay_mean_s=0.015)]
    message = " ".join(comparison_sentences(pair))
    assert ("“short” kept the queue shortest" in message) is clear
    assert ("No clear difference in mean queueing delay" in message) is not clear
    assert ("their intervals overlap" in message) is not clear


def test_a_sure_but_tiny_difference_is_none() -> None:
    pair = [subject("x", half=1e-6, utilisation=0.9990), subject("y", half=1e-6, utilisation=0.9991)]
    assert comparison_sentences(pair) == [
        "No clear difference in utilisation between the best two (99.9 %, the next 99.9 %: less than 1 % apart)."
    ]
