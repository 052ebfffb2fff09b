"""Quantities: what is read, what is refused and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock.input import units
from ackclock.input.units import Size, UnitError

POSITIVE = st.decimals(min_value=0, max_value=10**6, allow_nan=False, allow_infinity=False, places=6)


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (units.rate_bps, "100Mbit", 100e6),
        (units.rate_bps, "10Gbit", 10e9),
        (units.rate_bps, "64kbit", 64e3),
        (units.rate_bps, "1.5Gbit", 1.5e9),
        (units.rate_bps, "300bit", 300.0),
        (units.rate_bps, "100mbit", 100e6),
        (units.rate_bps, " 100 Mbit ", 100e6),
        (units.rate_bps, "1e2Mbit", 100e6),
        (units.time_s, "20ms", 0.02),
        (units.time_s, "1us", 1e-6),
        (units.time_s, "1µs", 1e-6),
        (units.time_s, "60s", 60.0),
        (units.time_s, "2min", 120.0),
        (units.time_s, "0s", 0.0),
        (units.bytes_of, "64KB", 64_000.0),
        (units.bytes_of, "64kB", 64_000.0),
        (units.bytes_of, "3000MB", 3e9),
        (units.bytes_of, "1448B", 1448.0),
        (units.bytes_of, "4KiB", 4096.0),
        (units.bytes_of, "1MiB", 1048576.0),
        (units.size, "50p", Size(50.0, "p")),
        (units.size, "1bdp", Size(1.0, "bdp")),
        (units.size, "0.3BDP", Size(0.3, "bdp")),
        (units.size, "64KB", Size(64_000.0, "B")),
        (units.count_rate_hz, "250/s", 250.0),
    ],
)
def test_reads(read, text, expected):
    assert read(text) == expected


@pytest.mark.parametrize("text", ["100mbps", "100Mbps", "1kbps", "5bps", "1Gbps"])
def test_bps_is_rejected_with_the_reason(text):
    with pytest.raises(UnitError, match=r"bytes per second in tc and bits per second elsewhere: write .*bit"):
        units.rate_bps(text)


def test_the_proposal_keeps_the_prefix():
    with pytest.raises(UnitError, match="write Gbit"):
        units.rate_bps("2gbps")
    with pytest.raises(UnitError, match="write kbit"):
        units.rate_bps("64kb")
    with pytest.raises(UnitError, match="write MB"):
        units.bytes_of("3Mb")


@pytest.mark.parametrize("text", ["1m", "1M", "1Ms", "1MS"])
def test_ambiguous_times_are_rejected(text):
    with pytest.raises(UnitError, match="may mean several times"):
        units.time_s(text)


@pytest.mark.parametrize("value", ["100", 100, 1.5, "1e6"])
def test_a_bare_number_requires_a_unit(value):
    for read in (units.rate_bps, units.time_s, units.bytes_of, units.size, units.count_rate_hz):
        with pytest.raises(UnitError, match="needs its unit"):
            read(value)


NO_QUANTITIES = ["", " ", "Mbit", "nan", "NaNMbit", "inf", "infMbit", "1..5Mbit", "1 2 Mbit", "１０Mbit", "0x10Mbit"]
NOT_EVEN_TEXTS = [None, True, [], {}, ["100Mbit"]]
LONG_OR_BROKEN = ["1Mbit\n2", "9" * 1000 + "Mbit", " " * 10**6]


@pytest.mark.parametrize("value", [*NO_QUANTITIES, *NOT_EVEN_TEXTS, *LONG_OR_BROKEN])
def test_an_invalid_quantity_is_rejected(value):
    with pytest.raises(UnitError, match="expected a rate such as 100Mbit"):
        units.rate_bps(value)


@pytest.mark.parametrize("text", ["-1Mbit", "-0Mbit", "-1e-9bit"])
def test_negative_values_are_rejected(text):
    with pytest.raises(UnitError, match="not negative"):
        units.rate_bps(text)


@pytest.mark.parametrize("text", ["1e999Mbit", "1e99999999999999999999s"])
def test_overflowing_values_are_rejected(text):
    read = units.time_s if text.endswith("s") else units.rate_bps
    with pytest.raises(UnitError, match="too large"):
        read(text)


def test_the_wrong_kind_of_unit_lists_the_right_ones():
    with pytest.raises(UnitError, match="units: bit kbit Mbit Gbit Tbit"):
        units.rate_bps("20ms")
    with pytest.raises(UnitError, match="units: ns us ms s min h"):
        units.time_s("100Mbit")


@given(POSITIVE, st.sampled_from(sorted(units.TIMES)))
def test_a_time_is_the_nearest_float_to_the_exact_product(number, unit):
    assert units.time_s(f"{number}{unit}") == float(number * units.TIMES[unit])


@given(POSITIVE, st.sampled_from(sorted(units.BIT_RATES)), st.sampled_from(["", " "]))
def test_a_rate_does_not_depend_on_its_case(number, unit, space):
    assert units.rate_bps(f"{number}{space}{unit}") == units.rate_bps(f"{number}{unit.lower()}")
    assert units.rate_bps(f"{number}{unit}") == units.rate_bps(f"{number}{unit.upper()}")


@given(POSITIVE)
def test_prefixes_are_thousands(number):
    assert units.bytes_of(f"{number}MB") == pytest.approx(1000 * units.bytes_of(f"{number}KB"))
    assert units.bytes_of(f"{number}MiB") == pytest.approx(1024 * units.bytes_of(f"{number}KiB"))


@given(POSITIVE, st.sampled_from(["p", "bdp", "B"]))
def test_a_size_survives_being_written(number, unit):
    size = units.size(f"{number}{unit}")
    assert units.size(str(size)).value == pytest.approx(size.value)


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none()))
def test_anything_else_is_a_unit_error_and_nothing_worse(value):
    for read in (units.rate_bps, units.time_s, units.bytes_of, units.size, units.count_rate_hz):
        try:
            read(value)
        except UnitError as error:
            assert error.expected
