"""The figures behind a finding, as people read them."""

from ackclock.figures import numbers


def test_units_appear_with_the_value_and_intervals_behind_it():
    result = {
        "rate_bps": 8.021e6,
        "rate_ci95": [8.020e6, 8.023e6],
        "depth_bytes": 101_900.0,
        "depth_ci95": None,
        "written_bytes_s": 2.5e6,
        "share": 0.25,
        "seconds": 29.79,
        "longest_s": 0.0042,
    }
    assert numbers.evidence_items(result) == [
        ("rate", "8.021 Mb/s (8.020 – 8.023)"),
        ("depth", "102 kB"),
        ("written", "2.50 MB/s"),
        ("share", "25.0 %"),
        ("time", "29.8 s"),
        ("longest", "4.20 ms"),
    ]


def test_what_has_no_unit_appears_as_it_is():
    result = {
        "limited": "cwnd",
        "segments_lost": 1353,
        "rtt_ratio": 2.39342,
        "net.ipv4.tcp_rmem": 16384,
        "known": None,
    }
    line = numbers.evidence_line(result)
    assert line == "limited cwnd, segments lost 1,353, rtt ratio 2.393, net.ipv4.tcp_rmem 16,384, known –"


def test_a_value_that_is_not_given_has_no_interval():
    assert numbers.evidence_line({"rate_bps": None, "rate_ci95": None}) == "rate –"
    assert numbers.evidence_line({"rate_bps": None, "rate_ci95": [1.0, 2.0]}) == "rate –"
