"""`ackclock sweep --design`, `merge` and `effects`, as they are typed."""

import json
import os
import subprocess
import sys

SWEPT = """
duration = "2s"
network = { topology = "dumbbell", rate = "5Mbit", rtt = "20ms", queue = { discipline = "pfifo", limit = "1bdp" } }
flows = [{ count = 2, congestion = "reno" }]
[sweep]
"network.queue.limit" = ["0.5bdp", "1bdp"]
"network.rtt" = ["10ms", "20ms"]
"network.rate" = ["4Mbit", "5Mbit"]
"flows[0].count" = [1, 2]
"""


def test_effects_of_a_design_that_ran_in_shards(tmp_path):
    (tmp_path / "swept.toml").write_text(SWEPT)

    def call(*words: str) -> str:
        command = [sys.executable, "-m", "ackclock", *words]
        environment = {**os.environ, "COLUMNS": "120"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    design = ("--engine", "fluid", "--design", "fractional:4", "--metrics", "queue_delay_mean_s", "--jobs", "1")
    assert "8 points" in call("sweep", "swept.toml", *design, "--dry-run")
    for shard in ("1", "2"):
        call("sweep", "swept.toml", *design, "--shard", f"{shard}/2", "--out", shard)
    assert "8 points" in call("merge-shards", "1", "2", "--out", "both", "--no-report")
    analysed = json.loads(call("effects", "both", "--metric", "queue_delay_mean", "--json"))
    assert (analysed["runs"], len(analysed["effects"])) == (8, 4)
    assert analysed["effects"][0]["keys"] in (["network.queue.limit"], ["flows[0].count"], ["network.rtt"])
    text = call("effects", "both", "--metric", "queue_delay_mean")
    assert text.startswith("Mean queueing delay: ")
    refused = subprocess.run(
        [sys.executable, "-m", "ackclock", "sweep", "swept.toml", "--shard", "1/2", "--require", "jain >= 0.5"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (refused.returncode, refused.stderr.startswith("--shard: found --require or --best")) == (2, True)
