"""Placement of experiments by option; and a batch system, whose commands are scripts here."""

from __future__ import annotations

import pytest

import ackclock as ac
from ackclock.experiments.cluster import Target, target

SWEPT = """
duration = "1s"
network = { topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "1bdp" } }
flows = [{ count = 2, congestion = "reno" }]
[sweep]
"network.rtt" = ["10ms", "20ms"]
"""


def test_options_select_the_target():
    assert target(None, None) is None
    assert target("tcp://192.0.2.1:8786", None) == Target(address="tcp://192.0.2.1:8786")
    assert target("tls://scheduler.example:8786", None).option == "--scheduler"
    assert target(None, "local:8") == Target(kind="local", workers=8)
    assert str(target(None, "slurm:40")) == "slurm:40"


@pytest.mark.parametrize(
    ("scheduler", "cluster", "message"),
    [
        ("127.0.0.1:8786", None, '--scheduler: found "127.0.0.1:8786"; expected an address such as "tcp://'),
        ("tcp://host", None, '--scheduler: found "tcp://host"; expected an address'),
        ("tcp://host:1", "local:2", "--scheduler: found --cluster beside it; expected one of them"),
        (None, "local", '--cluster: found "local"; expected how many workers, such as "local:8"'),
        (None, "local:0", '--cluster: found "local:0"; expected how many workers'),
        (None, "slurm:99999", '--cluster: found "slurm:99999"; expected how many workers'),
        (None, "slrum:4", '--cluster: found "slrum:4"; expected "slurm", with a number'),
    ],
)
def test_an_invalid_target_is_rejected(scheduler, cluster, message):
    with pytest.raises(ac.InputError) as refused:
        target(scheduler, cluster)
    assert str(refused.value).startswith(message)


@pytest.fixture
def batch(tmp_path, monkeypatch):
    """A Slurm that runs each job at once, on this machine; the script it is given is gone after its submission."""
    import dask.config
    import dask_jobqueue  # noqa: F401 (its defaults first)

    commands = {
        "sbatch": 'cp "$1" "$0.job"\nsetsid sh "$0.job" >/dev/null 2>&1 &\necho "Submitted batch job $!"',
        "scancel": 'for job; do kill -- "-$job"; echo "$job" >>"$0.d"; done',
    }
    for name, text in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    site = {"cores": 1, "memory": "2GB", "interface": "lo", "local-directory": str(tmp_path), "log-directory": None}
    with dask.config.set({f"jobqueue.slurm.{key}": value for key, value in site.items()}):
        yield tmp_path


def test_a_batch_system_runs_workers_and_they_are_cancelled(batch):
    (batch / "swept.toml").write_text(SWEPT)
    found = ac.sweep(batch / "swept.toml", "fluid", metrics=["jain"], cluster="slurm:1")
    assert found.table.equals(ac.sweep(batch / "swept.toml", "fluid", metrics=["jain"], jobs=1).table)
    assert len((batch / "scancel.d").read_text().split()) == 1


def test_a_site_without_configuration_is_reported(tmp_path):
    (tmp_path / "swept.toml").write_text(SWEPT)
    with pytest.raises(ac.InputError, match=r"^--cluster: found for slurm: You must specify .*jobqueue.yaml$"):
        ac.sweep(tmp_path / "swept.toml", "fluid", cluster="slurm:1")
