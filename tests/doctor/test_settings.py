"""Settings that explain what transfers do."""

from __future__ import annotations

from dataclasses import replace

from ackclock.doctor import settings

SOUND = settings.Settings(
    "host",
    "6.1",
    2,
    False,
    {"ipv4.tcp_rmem": "4096 131072 13000000", "ipv4.tcp_sack": "1"},
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
    assert sentences(tcp_rmem="4096 131072 6250000") == [
        "With net.ipv4.tcp_rmem of 6.25 MB no connection gets more than 500 Mb/s received over a round trip of 100 ms."
    ]


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
