"""Arguments that the formulas reject, with their messages; lists are as good as arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ackclock import theory
from ackclock.errors import InputError
from ackclock.theory import single_flow as sf

#: Arguments that are right, for each function.
RIGHT: dict[Callable[..., Any], dict[str, Any]] = {
    theory.mathis_window: {"p": 0.01, "b": 1, "constant": 1.2},
    theory.mathis: {"p": 0.01, "rtt_s": 0.1, "mss_bytes": 1448, "b": 1, "constant": 1.2},
    theory.pftk: {"p": 0.01, "rtt_s": 0.1, "mss_bytes": 1448, "rto_s": 0.4, "b": 1, "max_window": 100},
    theory.pftk_simple: {"p": 0.01, "rtt_s": 0.1, "mss_bytes": 1448, "rto_s": 0.4, "b": 1, "max_window": 100},
    theory.loss_free_packets: {"rate_bps": 1e9, "rtt_s": 0.1, "packet_bytes": 1500, "constant": 1.2},
    theory.response_window: {"variant": "reno", "p": 0.01},
    theory.response_function: {"variant": "reno", "p": 0.01, "rtt_s": 0.1, "mss_bytes": 1448},
    theory.highspeed_window: {"p": 0.01},
    theory.cubic_window: {"p": 0.01, "rtt_s": 0.1, "c": 0.4, "beta": 0.7},
    theory.loss_at: {"variant": "reno", "window": 10},
    theory.altman: {"streams": 2, "capacity_bps": 1e9, "beta": 0.5},
    theory.ideal_fct_s: {"wire_bytes": 1e5, "rate_bps": 1e7, "rtt_s": 0.1, "packet_bytes": 1514}
    | {"initial_window": 10},
    theory.bdp_buffer: {"capacity_bps": 1e9, "rtt_s": 0.1, "share": 0.2},
    theory.many_flows_buffer: {"flows": 4, "capacity_bps": 1e9, "rtt_s": 0.1, "factor": 0.63},
    theory.sawtooth_utilisation: {"buffer": 0.5, "beta": 0.5},
    theory.sawtooth_rtt: {"buffer": 0.5, "beta": 0.5},
    theory.emulation_limit: {"timer_hz": 1000, "mtu_bytes": 1500, "margin": 0.5},
    theory.small_packets_rate: {"slots": 2, "capacity_bps": 1e6, "segment_bytes": 1500},
    theory.small_packets_overhead: {"slots": 2, "sizes": 52},
    theory.tcp_rate_with_small_packets: {"slots": 2, "capacity_bps": 1e6, "segment_bytes": 1500, "small_bytes": 29},
    theory.delay_reduction: {"slots": 2, "sizes": 52},
    theory.slots_per_segment: {"small_rate_hz": 9, "capacity_bps": 1e6, "segment_bytes": 1500, "small_bytes": 29},
    theory.cubic_k: {"w_max": 80, "c": 0.4, "beta": 0.7},
    theory.cubic_curve: {"time_s": 1, "w_max": 80, "c": 0.4, "beta": 0.7},
    theory.time_after_plateau: {"packets": -1, "c": 0.4},
    theory.steps_after_plateau: {"packets": 4, "c": 0.4},
    theory.next_w_max: {"w_max": 80, "capacity_p": 80, "rtt_s": 0.1, "c": 0.4, "beta": 0.7},
    theory.cubic_convergence: {"w_max": 80, "capacity_p": 80, "rtt_s": 0.1, "c": 0.4, "beta": 0.7},
    theory.response_time: {
        "segments": 36,
        "rtt_s": 0.1,
        "p": 0.02,
        "p_syn": 0.1,
        "rto_s": 1,
        "recovery_s": 1,
        "initial_window": 4,
    },
    theory.handshake_time: {"p_syn": 0.1, "rto_s": 1},
    theory.size_where_syn_counts: {"share": 0.1, "rtt_s": 0.1, "p": 0.02, "rto_s": 1, "recovery_s": 1},
    sf.SingleFlow: {"capacity_pps": 1000, "rtt_s": 0.1, "buffer_p": 10, "beta": 0.2, "c": 0.4, "packets_per_ack": 1}
    | {"growth": "rtt", "rounding": "loss", "loss_detection": "rtt_later"},
    sf.cubic_threshold_rtt_s: {"capacity_pps": 1e4, "buffer_p": 0, "beta": 0.2, "c": 0.4, "packets_per_ack": 1},
    sf.min_difference: {"flow": sf.SingleFlow(1000, 0.1, 10), "w_max": 100},
    sf.trajectory: {"flow": sf.SingleFlow(1000, 0.1, 10), "duration_s": 1, "step_s": 0.1},
}

#: No numbers, and numbers that are none of anything.
NOTHING = (math.nan, -math.inf, "0.1", 1j, [[0.1], [0.1, 0.1]], {})
NEGATIVE = (*NOTHING, -0.1, [0.5, -0.1])

#: Further invalid values, by the argument's name.
WRONG = {
    **dict.fromkeys(("p", "beta"), (*NEGATIVE, 0, 1.5, np.array([0.5, 1.5]))),
    "p_syn": (*NEGATIVE, 1, 1.5),
    "margin": (*NEGATIVE, 0, 1.5),
    **dict.fromkeys(("slots", "streams", "flows"), (*NEGATIVE, 0, 0.5, math.inf)),
    **dict.fromkeys(("buffer", "buffer_p", "small_bytes", "small_rate_hz", "time_s"), (*NEGATIVE, math.inf)),
    **dict.fromkeys(("variant", "growth", "rounding", "loss_detection"), ("x", "", None, 1, ["reno"])),
    "max_window": (*NEGATIVE, 0),
    "recovery_s": (*NEGATIVE, math.inf),
    "packets": (*NOTHING, math.inf),
}
POSITIVE = (*NEGATIVE, 0, math.inf)

#: Values that one function rejects and others with the same argument accept.
STRICTER: dict[Callable[..., Any], dict[str, tuple[Any, ...]]] = {
    theory.pftk: {"p": (1,)},
    theory.pftk_simple: {"p": (1,)},
    theory.response_time: {"p": (1, [0.1, 0.2]), "rtt_s": ([0.1, 0.2],)},
    theory.size_where_syn_counts: {"p": (1,)},
    theory.next_w_max: {"w_max": ([80, 81],), "beta": (1, [0.5])},
    theory.steps_after_plateau: {"packets": (0, -1, 1.5, [1, 2])},
    theory.altman: {"beta": (1,)},
    theory.sawtooth_rtt: {"beta": (1,)},
    theory.loss_at: {"window": (1.2,)},
    theory.slots_per_segment: {"small_rate_hz": (4400, 1e6)},
    sf.SingleFlow: {"capacity_pps": ([1000, 2000],), "beta": (1,)},
}


def cases() -> list[Any]:
    return [
        pytest.param(function, name, wrong, id=f"{function.__name__}-{name}-{wrong}")
        for function, right in RIGHT.items()
        for name in right
        if name != "flow"
        for wrong in (*WRONG.get(name, POSITIVE), *STRICTER.get(function, {}).get(name, ()))
    ]


@pytest.mark.parametrize(("function", "name", "wrong"), cases())
def test_what_is_wrong_is_named(function, name, wrong):
    with pytest.raises(InputError, match=rf"^{function.__name__}: {name}: found .*; expected "):
        function(**{**RIGHT[function], name: wrong})


@pytest.mark.parametrize("function", RIGHT, ids=lambda function: function.__name__)
def test_what_is_right_is_taken(function):
    function(**RIGHT[function])


def test_every_function_is_here():
    others = ("pendulum", "single_flow", "ResponseTime", "BUFFER_RULES")
    functions = {getattr(theory, name) for name in theory.__all__ if name not in others}
    assert functions <= RIGHT.keys()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.pftk(-0.1, 0.1, 1448), "pftk: p: found -0.1; expected a probability between 0 and 1"),
        (lambda: theory.pftk(0.1, -1, 1448), "pftk: rtt_s: found -1; expected a positive number"),
        (lambda: theory.mathis([0.1, 1.5], 0.1, 1), "mathis: p: found 1.5; expected a probability above 0, 1 at most"),
        (
            lambda: theory.highspeed_window("x"),
            "highspeed_window: p: found 'x'; expected a probability above 0, 1 at most",
        ),
        (
            lambda: theory.handshake_time([0.1], 1),
            "handshake_time: p_syn: found [0.1]; expected a probability from 0, below 1, not several",
        ),
        (
            lambda: theory.response_function("cubic", 0.1, 0.1, 1448),
            "response_function: variant: found 'cubic'; expected one of reno, bic, highspeed, htcp, scalable; "
            "CUBIC's is cubic_window",
        ),
        (
            lambda: sf.SingleFlow(1000, 0.1, 10, rounding="x"),  # type: ignore[arg-type]
            "SingleFlow: rounding: found 'x'; expected one of nothing, loss, window",
        ),
        (lambda: theory.loss_at("reno", 1), "loss_at: window: found 1.0; expected 1.22 or more"),
    ],
)
def test_the_texts(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == message


#: The argument that may be an array, where it is not the first.
SECOND = {theory.response_window: "p", theory.response_function: "p", theory.loss_at: "window"}
SINGLE = (
    theory.steps_after_plateau,
    theory.next_w_max,
    theory.cubic_convergence,
    theory.response_time,
    theory.handshake_time,
    theory.size_where_syn_counts,
)


@pytest.mark.parametrize(
    "function", [function for function in RIGHT if function not in SINGLE and function.__module__.count(".") == 2],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_a_list_is_an_array_of_them_and_a_number_is_a_float(function):
    right = RIGHT[function]
    name = SECOND.get(function, next(iter(right)))
    one = function(**right)
    assert type(one) is float
    for two in ([right[name]] * 2, np.array([right[name]] * 2)):
        result = function(**{**right, name: two})
        assert isinstance(result, np.ndarray)
        assert result.tolist() == pytest.approx([one, one], rel=1e-14)


def test_small_packets_that_just_fill_the_link_are_rejected():
    with pytest.raises(InputError, match="fill the link"):
        theory.slots_per_segment(1000, 200e3, 1500, 25)
    with pytest.raises(InputError, match="fill the link"):
        theory.slots_per_segment([10, 1000], 200e3, 1500, 25)


def test_transfers_may_be_a_list():
    assert theory.response_time([36, 36], 0.2, 0.02).total_s.shape == (2,)


def test_a_wrong_call_is_python_s_own_error():
    with pytest.raises(TypeError, match="rtt_s"):
        theory.pftk(0.1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        theory.highspeed_window(0.1, 0.1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="rate"):
        theory.highspeed_window(0.1, rate=1)  # type: ignore[call-arg]


def test_none_is_the_default_only_where_it_is():
    assert theory.pftk(0.01, 0.1, 1448, rto_s=None) == theory.pftk(0.01, 0.1, 1448)
    with pytest.raises(InputError, match="b: found None"):
        theory.pftk(0.01, 0.1, 1448, b=None)  # type: ignore[type-var]
