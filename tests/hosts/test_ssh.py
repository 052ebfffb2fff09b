"""Commands of ssh: no value of a scenario becomes an option."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ackclock.cli import run_jobs
from ackclock.errors import InputError
from ackclock.hosts import ssh


@pytest.mark.parametrize("name", ["alice", "root@alice.example.net", "10.0.0.1", "fe80::1", "a_b@h-1"])
def test_the_destination_follows_all_options(name: str):
    words = ssh.command(name, "true")
    assert words[-3:] == ["--", name, "true"]


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "", "a b", "a\n", "@a", "a@-b", "-a@b", "a;b", "$(x)", "ssh://a"])
def test_invalid_destinations_are_rejected(name: str):
    with pytest.raises(InputError, match="expected a host as ssh knows it"):
        ssh.command(name, "true")


def test_options_do_not_change_host_keys_and_logins():
    words = " ".join(ssh.command("alice", "true", Path("-odd")))
    assert "-F -odd" in words
    for name in ("StrictHostKeyChecking", "UserKnownHostsFile", "IdentityFile", "User=", "PasswordAuth"):
        assert name not in words


def test_ssh_config_is_a_file_and_for_the_engine_linux(tmp_path: Path):
    scenario = tmp_path / "any.toml"
    with pytest.raises(InputError, match=r"--ssh-config: found .* with --engine packet; expected --engine linux"):
        run_jobs.load_scenario(scenario, run_jobs.Options(ssh_config=tmp_path / "config"))
    with pytest.raises(InputError, match=r"--ssh-config: found no file .*/config; expected an ssh configuration"):
        run_jobs.load_scenario(scenario, run_jobs.Options(engine="linux", ssh_config=tmp_path / "config"))


@pytest.mark.skipif(not shutil.which("ssh"), reason="no ssh")
def test_aliases_are_resolved_by_the_users_ssh(tmp_path: Path):
    config = tmp_path / "config"
    config.write_text("Host alice\n  HostName 10.0.0.7\n")
    assert ssh.host_name("root@alice", config) == "10.0.0.7"
    assert ssh.host_name("10.0.0.8", config) == "10.0.0.8"
    with pytest.raises(InputError, match="expected a host as ssh knows it"):
        ssh.host_name("-oProxyCommand=x", config)
