"""Settings that explain what transfers do."""

from __future__ import annotations

from dataclasses import replace

from ackclock.doctor import settings

SOUND = settings.Settings(
    "host",
    "6.1",
    2,
    False,
    {"ipv4.tcp_rmem": "4096 131072 26000000", "ipv4.tcp_sack": "1"},
    {"eth0": 1e9, "eth1": None},
)


def sentences(**sysctls: str) -> list[str]:
    valid = {**SOUND.sysctls, **{f"ipv4.{name}": value for name, value in sysctls.items()}}
    return [finding.sentence for finding in settings.findings(replace(SOUND, sysctls=valid))]


def test_sound_settings_are_not_worth_a_word():
    assert sentences() == []


def test_what_is_switched_off_is_named_with_its_cost():
    assert sentences(tcp_sack="0") == [
        "net.ipv4.tcp_sack is off: of several losses in one round trip, one is repaired in each."
    ]


def test_a_buffer_is_measured_against_the_rate():
    """Half of 6.25 MB is window: 3.125 MB in 100 ms are 250 Mbit/s."""
    assert sentences(tcp_rmem="4096 131072 6250000") == [
        "With net.ipv4.tcp_rmem of 6.25 MB no connection gets more than about 250 Mb/s received over an RTT of 100 ms."
    ]


def test_buffers_are_sized_for_a_given_path():
    """400 Mbit/s over 50 ms is a BDP of 2.5 MB, for which a buffer of 5 MB is enough, and one byte less is not."""
    host = replace(SOUND, sysctls={"ipv4.tcp_rmem": "4096 131072 4999999", "ipv4.tcp_wmem": "4096 16384 5000000"})
    small, enough = settings.findings(host, 400e6, 50e-3)
    assert small.bad
    assert small.next == 'sysctl -w net.ipv4.tcp_rmem="4096 131072 5000000": 2 BDP.'
    assert small.evidence == {"net.ipv4.tcp_rmem": 4999999, "bdp_bytes": 2.5e6, "needed_bytes": 5_000_000}
    assert not enough.bad
    assert enough.sentence == (
        "net.ipv4.tcp_wmem of 5.00 MB is enough for a connection with 400 Mb/s sent over an RTT of 50.0 ms."
    )
    assert [each.sentence for each in settings.findings(host, 1e6)] == []


def test_memory_of_peers_is_named():
    (sentence,) = sentences(tcp_no_metrics_save="0")
    assert "repeated measurements differ" in sentence


def test_the_fastest_interface_counts_and_a_default_one_where_none_reports():
    assert SOUND.fastest_bps == 1e9
    assert replace(SOUND, interfaces={"eth0": None}).fastest_bps == settings.DEFAULT_BPS


def test_this_host_reports_what_it_is():
    valid = settings.read()
    assert valid.processors >= 1
    assert valid.sysctls["ipv4.tcp_congestion_control"]
    assert "lo" not in valid.interfaces


def test_a_host_that_reports_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "SYSCTLS", tmp_path / "none")
    monkeypatch.setattr(settings, "INTERFACES", tmp_path / "none")
    valid = settings.read()
    assert valid.sysctls == {}
    assert valid.interfaces == {}
    assert list(settings.findings(valid)) == []
