import pytest

from ackclock.figures import numbers


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (95_660_000, "bit/s", "95.7 Mb/s"),
        (999, "bit/s", "999 bit/s"),
        (1e10, "bit/s", "10.0 Gb/s"),
        (0.0844, "s", "84.4 ms"),
        (12.34, "s", "12.3 s"),
        (2.5e-8, "s", "25.0 ns"),
        (0.9941, "share", "99.4 %"),
        (0.00096, "share", "0.0960 %"),
        (0.9446, "1", "0.945"),
        (12345.6, "packets", "12,346 packets"),
        (0, "", "0"),
        (3.0, "", "3"),
        (3.2, "", "3.20"),
        (1.0, "1", "1.00"),
        (3_500_000, "bytes", "3.50 MB"),
        (200_000.0, "packets", "200,000 packets"),
        (0, "s", "0 s"),
        (-0.25, "1", "−0.250"),
        (None, "s", "–"),
    ],
)
def test_value(number: float | None, unit: str, text: str) -> None:
    assert numbers.value(number, unit) == text


@pytest.mark.parametrize(
    ("given", "unit", "texts"),
    [
        ((0.0844, 0.0835, 0.0853), "s", ("84.4 ms", "83.5 – 85.3")),
        ((95.66e6, 95.61e6, 95.71e6), "bit/s", ("95.66 Mb/s", "95.61 – 95.71")),
        ((18.2, 15.8, 20.6), "", ("18.2", "15.8 – 20.6")),
        ((0.0, 0.0, 0.0), "", ("0", "0 – 0")),
        ((0.5, None, None), "share", ("50.0 %", "–")),
    ],
)
def test_interval(given: tuple[float | None, ...], unit: str, texts: tuple[str, str]) -> None:
    assert numbers.interval(*given, unit) == texts  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("number", "unit", "half", "expected"),
    [
        (0.0012, "s", 0.0003, "+1.20 ± 0.30 ms"),
        (219e-9, "s", 652e-6, "0 ± 652 µs"),
        (-0.1, "share", None, "−10.0 %"),
        (1e-20, "1", None, "0.000000000"),
        (0.0, "", 0.0, "0 ± 0"),
        (None, "s", None, "–"),
    ],
)
def test_differences_have_a_sign_and_one_unit(number, unit, half, expected):
    assert numbers.signed(number, unit, half) == expected


def test_estimates_show_half_of_the_interval_and_the_longer_half_of_a_cut_one():
    assert numbers.estimate(95.66e6, 95.61e6, 95.71e6, "bit/s") == "95.66 ± 0.05 Mb/s"
    assert numbers.estimate(0.99, 0.95, 1.0, "share") == "99.0 ± 4.0 %"
    assert numbers.estimate(0.99, None, None, "share") == "99.0 %"


@pytest.mark.parametrize(
    ("low", "mean", "high", "unit", "text"),
    [
        (0.301, 0.719, 1.0, "", "0.719 (0.301–1)"),
        (0.884, 0.947, 1.0, "share", "94.7 % (88.4–100)"),
        (0.9999, 1.0, 1.0, "share", "100.0 ± 0.0 %"),
        (95.61e6, 95.66e6, 95.71e6, "bit/s", "95.66 ± 0.05 Mb/s"),
        (None, 0.719, None, "", "0.719"),
        (None, None, None, "", "–"),
    ],
)
def test_an_interval_that_was_cut_has_its_ends(
    low: float | None, mean: float | None, high: float | None, unit: str, text: str
) -> None:
    assert numbers.estimate_or_ends(mean, low, high, unit) == text
