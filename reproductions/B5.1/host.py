"""What B5.1 measures: ten CUBIC flows of this machine's kernel, through a queue between two private namespaces."""

from ackclock.campaigns import running
from ackclock.dataset import Dataset
from ackclock.scenario import planning

SCENARIO = """\
name = "Ten CUBIC flows in step"
duration = "120s"
warmup = "20s"
repeats = 3

[network]
topology = "dumbbell"
rate = "40Mbit"
rtt = "0.2us"
burst = "5000B"
queue = { discipline = "pfifo", limit = "1500p" }

[[flows]]
count = 10
congestion = "cubic"
start = { jitter = "1s" }

[linux]
kernel = "live"
"""

#: A look: one run of so many seconds.
QUICK_S = 40.0


def examine(*, quick: bool) -> Dataset:
    """The runs, one after the other: side by side they would disturb each other. Nothing is left behind."""
    text = SCENARIO.replace('"120s"', f'"{QUICK_S:g}s"').replace("repeats = 3", "repeats = 1") if quick else SCENARIO
    return running.run(planning.loads(text, "host.py"), "linux", jobs=1)
