"""Queue disciplines as words for tc, and what of their specs the kernel has not."""

from __future__ import annotations

import pytest

import ackclock as ac
from ackclock import algorithms, engines
from ackclock.engines.linux import disciplines

TEXT = """
duration = "10s"
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "40ms"
queue = {{ discipline = "{name}", {given} }}
[[flows]]
"""

#: Discipline, what is given of it, and its words, by its page of the manual.
TC_ARGUMENTS = [
    ("pfifo", 'limit = "10p"', "pfifo limit 10"),
    ("bfifo", 'limit = "64KB"', "bfifo limit 64000"),
    (
        "red",
        'limit = "400KB", min = "30KB", max = "90KB", burst = "50p", probability = 1e-5, ecn = true, adaptive = true',
        "red limit 400000 min 30000 max 90000 avpkt 1000 burst 50 probability 0.00001 bandwidth 10000000bit ecn"
        " adaptive",
    ),
    # 10 Mb/s × 20 ms = 25,000 B: 12,500 and thrice that.
    (
        "ared",
        'limit = "100p", target = "20ms", gentle = false',
        "red limit 150000 min 12500 max 37500 avpkt 1500 probability 0.1 bandwidth 10000000bit adaptive",
    ),
    ("codel", 'ce_threshold = "1ms"', "codel limit 1000 target 5ms interval 100ms noecn ce_threshold 1ms"),
    (
        "fq_codel",
        'limit = "1000p"',
        "fq_codel limit 1000 memory_limit 33554432 flows 1024 quantum 1514 target 5ms interval 100ms drop_batch 64 ecn",
    ),
    (
        "sfq",
        "headdrop = true",
        "sfq limit 127 depth 127 flows 128 divisor 1024 quantum 1514 perturb 0 headdrop",
    ),
    (
        "pie",
        "ecn = true",
        "pie limit 1000 target 15ms tupdate 15ms alpha 2 beta 20 ecn nobytemode no_dq_rate_estimator",
    ),
    (
        "fq_pie",
        "bytemode = true",
        "fq_pie limit 10240 flows 1024 quantum 1514 ecn_prob 10 target 15ms tupdate 15ms alpha 2 beta 20 noecn bytemode"
        " no_dq_rate_estimator",
    ),
    # Without a bandwidth it is the link's.
    ("red", 'limit = "64KB", bandwidth = "3Mbit"', "red limit 64000 avpkt 1000 probability 0.02 bandwidth 3000000bit"),
    (
        "red",
        'limit = "64KB", harddrop = true, nodrop = true',
        "red limit 64000 avpkt 1000 probability 0.02 bandwidth 10000000bit harddrop nodrop",
    ),
    (
        "fq_codel",
        'target = "2500us", interval = "50ms", ecn = false, ce_threshold = "1ms", drop_batch = 8, flows = 16',
        "fq_codel limit 10240 memory_limit 33554432 flows 16 quantum 1514 target 2500us interval 50ms drop_batch 8"
        " noecn ce_threshold 1ms",
    ),
    (
        "sfq",
        'perturb = "10s", quantum = "3KB", depth = "20p"',
        "sfq limit 127 depth 20 flows 128 divisor 1024 quantum 3000 perturb 10",
    ),
    (
        "pie",
        'alpha = 1, beta = 10, bytemode = true, dq_rate_estimator = true, tupdate = "30ms"',
        "pie limit 1000 target 15ms tupdate 30ms alpha 1 beta 10 noecn bytemode dq_rate_estimator",
    ),
    (
        "cake",
        'rtt = "20ms"',
        "cake unlimited diffserv3 triple-isolate no-ack-filter rtt 20ms raw noatm mpu 0",
    ),
    (
        "cake",
        'bandwidth = "8Mbit", diffserv = "besteffort", isolation = "dual-dsthost", ack_filter = "aggressive", '
        'overhead = -4, link_layer = "ptm", mpu = 64, memlimit = "1MB"',
        "cake bandwidth 8000000bit besteffort dual-dsthost ack-filter-aggressive rtt 100ms overhead -4 ptm mpu 64"
        " memlimit 1000000",
    ),
    # 4 Mb/s × 10 ms + 10,000 B = 15,000 B, less than the limit.
    ("tbf", 'limit = "64KB", latency = "10ms", per_flow = false', "tbf rate 4000000bit burst 10000 limit 15000"),
]

SYN = "match ip protocol 6 0xff match u8 0x02 0x02 at 33"
FIN = "match ip protocol 6 0xff match u8 0x01 0x01 at 33"


def plan(name, given="", flows='congestion = "cubic"'):
    return ac.loads(TEXT.format(name=name, given=given) + flows + "\n").plan()


def tc_commands(planned, priorities=()):
    return list(disciplines.commands(planned.links[0], "out", priorities))


def reasons_of(planned):
    return [str(reason) for reason in engines.unsupported(engines.engine("linux"), planned)]


@pytest.mark.parametrize(("name", "given", "expected"), TC_ARGUMENTS)
def test_tc_arguments_of_each_qdisc(name, given, expected):
    planned = plan(name, given)
    assert reasons_of(planned) == []
    assert tc_commands(planned) == [f"qdisc add dev out parent 1:1 handle 10: {expected}"]


def test_every_parameter_is_used_or_fixed():
    """No parameter of a spec is forgotten: another value gives other words, or is refused."""
    others = {"boolean": lambda p: not p.default, "choice": lambda p: p.choices[-1]}
    for name, given, _ in TC_ARGUMENTS:
        spec = algorithms.spec("queue", name)
        before = tc_commands(plan(name, given))
        for key, parameter in spec.parameters.items():
            old = plan(name, given).links[0].queue.parameters[spec.key(key)]
            if (name, key) == ("ared", "floor"):
                continue  # matters where the target is small
            value = others.get(parameter.kind, lambda p: p.read(p.minimum))(parameter)
            value = value.value if hasattr(value, "value") else value
            if value == old:
                last = parameter.choices[0] if parameter.kind == "choice" else parameter.maximum
                value = not value if parameter.kind == "boolean" else parameter.read(last)
                value = value.value if hasattr(value, "value") else value
            value = int(value) if parameter.kind in ("packets", "bytes") else value
            changed = _with(plan(name, given), spec.key(key), value)
            assert [*disciplines.unsupported(changed.links[0].queue)] or tc_commands(changed) != before, f"{name} {key}"


def _with(planned, key, value):
    from dataclasses import replace

    link = planned.links[0]
    queue = replace(link.queue, parameters={**link.queue.parameters, key: value})
    return replace(planned, links=(replace(link, queue=queue),))


def test_prio_finds_priorities_in_the_addresses():
    """Priority 6 is band 0 of the usual map, class 10:1; its addresses are in 10.96.0.0/12."""
    planned = plan("prio", 'limit = "10p"', 'congestion = "cubic"\npriority = 6')
    assert tc_commands(planned, {0, 6}) == [
        "qdisc add dev out parent 1:1 handle 10: prio bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
        "qdisc add dev out parent 10:1 handle 11: pfifo limit 10",
        "qdisc add dev out parent 10:2 handle 12: pfifo limit 10",
        "qdisc add dev out parent 10:3 handle 13: pfifo limit 10",
        "filter add dev out parent 10: protocol ip prio 1 u32 match ip src 10.96.0.0/12 flowid 10:1",
    ]


@pytest.mark.parametrize(
    ("name", "given", "leaf", "matches"),
    [
        ("synprio", 'limit = "10p"', "pfifo limit 10", [SYN]),
        ("synfinprio", 'limit = "10p"', "pfifo limit 10", [SYN, FIN]),
        ("spa", 'limit = "10p"', "codel limit 10 target 5ms interval 100ms noecn", [SYN, FIN]),
        ("spa", 'target = "1ms", ecn = true', "codel limit 1000 target 1ms interval 100ms ecn", [SYN, FIN]),
    ],
)
def test_what_opens_a_connection_goes_first(name, given, leaf, matches):
    """In tc, priorities lead to the second band; flags, in the 14th byte of TCP behind 20 of IPv4, to the first."""
    assert tc_commands(plan(name, given)) == [
        "qdisc add dev out parent 1:1 handle 10: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
        f"qdisc add dev out parent 10:1 handle 11: {leaf}",
        f"qdisc add dev out parent 10:2 handle 12: {leaf}",
        *(f"filter add dev out parent 10: protocol ip prio 1 u32 {match} flowid 10:1" for match in matches),
    ]


@pytest.mark.parametrize(
    ("name", "given", "what"),
    [
        ("red", 'limit = "64KB", gentle = true', "gentle = true"),
        ("red", 'limit = "64KB", weight = 0.002', "weight = 0.002"),
        ("red", 'limit = "64KB", bytes = false', "bytes = false"),
        ("ared", 'limit = "100p"', "gentle = true"),
        ("codel", "newton = false", "newton = false"),
        ("spa", "newton = false", "newton = false"),
        ("pie", "alpha = 0.125", "alpha = 0.125"),
        ("pie", 'mtu = "1KB"', "mtu_bytes = 1000"),
        ("fq_pie", "ecn_prob = 2.5", "ecn_prob = 2.5"),
        ("ared", 'limit = "100p", gentle = false, interval = "1s"', "interval_s = 1"),
        ("pie", 'max_burst = "100ms"', "max_burst_s = 0.1"),
        ("tbf", 'limit = "64KB"', "per_flow = true"),
        ("sfq", 'perturb = "1500ms"', "perturb_s = 1.5"),
    ],
)
def test_features_missing_in_the_kernel_are_rejected(name, given, what):
    (reason,) = reasons_of(plan(name, given))
    assert reason.startswith(
        f'Unsupported: engine "linux" has no queue discipline "{name}" with {what}; available in "packet"'
    )


@pytest.mark.parametrize("name", ["blue", "dualpi2", "redfavor"])
def test_disciplines_that_it_has_not(name):
    given = {"blue": 'limit = "10p"', "redfavor": 'limit = "64KB"'}.get(name, "ramp = '0s'")
    assert reasons_of(plan(name, given)) == [
        f'Unsupported: engine "linux" has no queue discipline "{name}"; available in "packet"'
    ]


def test_times_and_numbers_are_as_tc_reads_them():
    times = [(0.05, "50ms"), (0.0125, "12500us"), (2.0, "2s"), (1e-9, "0.001us"), (1 / 30, "33333.333us")]
    assert [disciplines.time(seconds) for seconds, _ in times] == [words for _, words in times]
    assert [disciplines.number(value) for value in (1e-5, 0.1, 1.0, 12.5)] == ["0.00001", "0.1", "1", "12.5"]
