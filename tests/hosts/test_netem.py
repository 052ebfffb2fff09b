"""netem on a testbed's router: its delay, its loss, and that nothing of it is left.

The kernels that these tests run on may have no netem. The guest's has: it is booted in real time, with the testbed's
namespaces and sshds in it, and ackclock among them.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
import realtime
import testbeds

import ackclock as ac

MISSING = testbeds.missing_requirement()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

ACKCLOCK = (sys.executable, "-m", "ackclock")
SCRIPT = str(Path(testbeds.__file__))

#: The router's delay, in every round trip, and its loss of data.
DELAY_S, LOSS = 0.04, 0.01

#: At 4 Mb/s, for a kernel that is a process: its link may make up for 32 ms without it. The queue takes 90 ms.
DELAYED = f'rtt = "{DELAY_S}s"\nburst = "16KB"\n'
PATH = f"{DELAYED}loss = {{ probability = {LOSS} }}\n"
LATER = """[[network.changes]]
at = "4s"
link = "bottleneck"
delay = "30ms"
loss = { probability = 0 }
"""


@dataclass(frozen=True)
class Result:
    """The data and the output of a run across such hosts."""

    data: ac.Dataset
    output: str


def scenario(folder: Path, *, duration_s: float, more: str = PATH) -> Path:
    text = testbeds.SCENARIO.format(duration=duration_s, more=more).replace("20Mbit", "4Mbit").replace('"50p"', '"30p"')
    path = folder / "netem.toml"
    path.write_text(text)
    return path


def across_hosts(kernel: Path, path: Path, *more: str) -> Result:
    """A run in a machine of its own. The testbed's script says if anything differs on a host afterwards: status 1."""
    bed, out = path.parent / "bed", path.parent / "hosts"
    words = (*ACKCLOCK, "run", str(path), *testbeds.LINUX, "--ssh-config", str(bed / "ssh_config"), "--out", str(out))
    status, output = realtime.run(kernel, [sys.executable, SCRIPT, str(bed), *words, *more])
    assert status == 0, output
    return Result(ac.Dataset.read(out), output)


def min_rtt_s(samples: pl.DataFrame) -> float:
    return float(samples["srtt_s"].drop_nulls().drop_nans().min())  # type: ignore[arg-type]


def test_a_router_delays_and_drops_and_is_restored(guest_kernel: Path, tmp_path: Path):
    """From the fourth second on the delay is 30 ms longer, and nothing is lost any more."""
    path = scenario(tmp_path, duration_s=7, more=PATH + LATER)
    found = across_hosts(guest_kernel, path)
    samples = found.data.frame("flow_samples")
    before, after = (samples.filter(pl.col("time_s").is_between(*span)) for span in ((0.5, 3.9), (5.0, 7.0)))
    # The path itself has next to no delay; a round trip may wait for 30 packets of 3 ms.
    assert DELAY_S <= min_rtt_s(before) < DELAY_S + 0.06
    assert DELAY_S + 0.03 <= min_rtt_s(after) < DELAY_S + 0.03 + 0.1
    events = found.data.frame("events").filter(pl.col("kind") == "link_change")
    assert events["time_s"].to_list() == pytest.approx([4.0], abs=0.5)
    links = found.data.frame("links").row(0, named=True)
    assert links["lost_p"] > 0, "of some 1,000 packets, a hundredth"


#: For runs of 40 s, which end at different points of the windows' sawtooth.
BOUNDS = {"goodput_bps": 0.01, "queue_delay_mean_s": 0.05, "rtt_mean_s": 0.03}


@pytest.mark.oracle
def test_hosts_and_guest_agree_over_a_delay(guest_kernel: Path, tmp_path: Path):
    """The same scenario in virtual time and across hosts in real time, of the same kernel."""
    path = scenario(tmp_path, duration_s=40, more=DELAYED)
    real = across_hosts(guest_kernel, path)
    words = (*ACKCLOCK, "run", str(path), *testbeds.LINUX, "--kernel", "guest", "--out", str(tmp_path / "guest"))
    subprocess.run(words, check=True, capture_output=True)
    virtual = ac.Dataset.read(tmp_path / "guest")
    for name, bound in BOUNDS.items():
        ours, theirs = (data.metrics()["summary"][name]["mean"] for data in (real.data, virtual))
        assert ours == pytest.approx(theirs, rel=bound), name


@pytest.mark.oracle
def test_one_percent_is_lost(guest_kernel: Path, tmp_path: Path):
    """Within three standard deviations of the number of lost packets."""
    links = across_hosts(guest_kernel, scenario(tmp_path, duration_s=40)).data.frame("links").row(0, named=True)
    offered_p = links["arrived_total_p"] + links["lost_total_p"]
    assert offered_p > 5_000
    assert links["lost_total_p"] == pytest.approx(LOSS * offered_p, abs=3 * (LOSS * offered_p) ** 0.5)
