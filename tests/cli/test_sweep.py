"""The table of `ackclock sweep`."""

import os
import subprocess
import sys

SWEPT = """
duration = "1s"
network = { topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "1bdp" } }
flows = [{ count = 2, congestion = "cubic" }]
[sweep]
"network.queue.limit" = ["0.5bdp", "1bdp"]
"""


def test_every_selected_metric_is_printed_in_eighty_columns(tmp_path):
    (tmp_path / "swept.toml").write_text(SWEPT)
    asked = "utilisation,jain,loss_rate,queue_delay_p95_s,rtt_mean_s,timeouts"
    command = ("sweep", "swept.toml", "--metrics", asked, "--jobs", "1", "--no-report")
    done = subprocess.run(
        [sys.executable, "-m", "ackclock", *command],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    headings = ("utilisation", "Jain", "loss rate", "95th percentile of the queueing delay", "round-trip", "Timeouts")
    assert all(heading in done.stdout for heading in headings), done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_requirements_decide_the_exit_status(tmp_path):
    (tmp_path / "swept.toml").write_text(SWEPT.replace('"1s"', '"2s"'))
    options = ("--engine", "fluid", "--repeats", "2", "--no-report", "--jobs", "1")
    command = [sys.executable, "-m", "ackclock", "sweep", "swept.toml", *options]

    def call(*more):
        return subprocess.run([*command, *more], cwd=tmp_path, capture_output=True, text=True, check=False)

    done = call("--require", "jain >= 0.1", "--best", "min:queue_delay_mean")
    assert (done.returncode, done.stdout.count("holds"), done.stdout.count("holds, best")) == (0, 2, 1), done.stderr
    none = call("--require", "goodput >= 100Gbit", "--json")
    assert (none.returncode, '"verdict": "none"' in none.stdout) == (4, True)
    assert call("--require", "jan >= 1").stderr == '--require: found "jan"; expected "jain"\n'
