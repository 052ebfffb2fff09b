"""The average windows of RFC 9438, tables 1 and 2: each 1/p-th data packet is lost, every segment is acknowledged.

The tables come from a deterministic model (RFC 9438 section 5.1): each epoch ends where the curve is flat. `reno` holds
them as it is. For `cubic` it takes the RFC's own arithmetic (`variant = "rfc9438"`): Linux's whole segments have no single
equilibrium under periodic loss, because within half a segment of the last maximum the curve counts as flat. And it takes
time: the distance to the equilibrium falls only as one over the number of losses, so a run has 600 of them, of which the
second half counts. Fast convergence is off, since the model has none, and slow start ends with a loss.
"""

import pytest

import ackclock as ac

#: RTT in s → 1/p → average window in segments: Reno, and CUBIC with C = 0.04, 0.4 and 4.
TABLES = {
    0.1: {
        10**3: (38, 38, 38, 59),
        10**4: (120, 120, 187, 333),
        10**5: (379, 593, 1054, 1874),
        10**6: (1200, 3332, 5926, 10538),
    },
    0.01: {
        10**3: (38, 38, 38, 38),
        10**4: (120, 120, 120, 120),
        10**5: (379, 379, 379, 379),
        10**6: (1200, 1200, 1200, 1874),
    },
}
C_VALUES = (0.04, 0.4, 4)
TOLERANCE = 0.05
RENO_EPOCHS, CUBIC_EPOCHS = 40, 600


def average_window(congestion: str, rtt_s: float, every: int, epochs: int, expected: float) -> float:
    """Time average of cwnd over the second half of a run of about so many loss epochs; nothing ever queues."""
    duration_s = round(epochs * every * rtt_s / expected, 3)
    scenario = f"""
duration = "{duration_s}s"
warmup = "{duration_s / 2}s"
repeats = 1
[network]
topology = "dumbbell"
rate = "1Tbit"
rtt = "{rtt_s}s"
queue = {{ discipline = "pfifo", limit = "10000000p" }}
loss = {{ every = {every} }}
[tcp]
delayed_ack = false
[[flows]]
congestion = {congestion}
[record]
interval = "{max(rtt_s, duration_s / 5000):.6f}s"
"""
    data = ac.run(ac.loads(scenario).plan())
    samples = data.flow_samples.filter(data.flow_samples["time_s"] >= duration_s / 2)
    return float(samples["cwnd"].mean())


def assert_reno(rtt_s: float, every: int) -> None:
    expected = TABLES[rtt_s][every][0]
    assert average_window('"reno"', rtt_s, every, RENO_EPOCHS, expected) == pytest.approx(expected, rel=TOLERANCE)


def assert_cubic(rtt_s: float, every: int, c: float) -> None:
    expected = TABLES[rtt_s][every][1 + C_VALUES.index(c)]
    congestion = f'{{ kind = "cubic", variant = "rfc9438", c = {c}, fast_convergence = false, hystart = false }}'
    window = average_window(congestion, rtt_s, every, CUBIC_EPOCHS, expected)
    assert window == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.parametrize("rtt_s", TABLES)
@pytest.mark.parametrize("every", [10**3, 10**4, 10**5])
def test_reno(rtt_s: float, every: int) -> None:
    assert_reno(rtt_s, every)


@pytest.mark.parametrize("c", C_VALUES)
@pytest.mark.parametrize("rtt_s", TABLES)
@pytest.mark.parametrize("every", [10**3, 10**4])
def test_cubic(rtt_s: float, every: int, c: float) -> None:
    assert_cubic(rtt_s, every, c)


@pytest.mark.oracle
@pytest.mark.parametrize("rtt_s", TABLES)
def test_reno_at_one_in_a_million(rtt_s: float) -> None:
    assert_reno(rtt_s, 10**6)


@pytest.mark.oracle
@pytest.mark.parametrize("c", C_VALUES)
@pytest.mark.parametrize("rtt_s", TABLES)
@pytest.mark.parametrize("every", [10**5, 10**6])
def test_cubic_at_rare_losses(rtt_s: float, every: int, c: float) -> None:
    assert_cubic(rtt_s, every, c)


def test_whole_segments_stay_where_they_came_from() -> None:
    """Linux's arithmetic under the same loss: after 600 losses still above the RFC's 187, coming from slow start."""
    linux = '{ kind = "cubic", fast_convergence = false, hystart = false }'
    assert average_window(linux, 0.1, 10**4, CUBIC_EPOCHS, 187) > 1.1 * 187
