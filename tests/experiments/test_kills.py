"""SIGKILL at any time: a sweep goes on to the same bytes, a result is the old one or the new one, and nothing stays."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from small_networks import dumbbell
from warm import Warm

from ackclock.dataset import Dataset, manifests
from ackclock.dataset.manifests import CAPTURES
from ackclock.system.files import is_temporary

SCENARIO = f"""\
name = "small"
duration = "1s"
warmup = "200ms"
repeats = 12

{dumbbell("1Mbit", "20ms", "4p")}

[[flows]]
count = 2
congestion = "cubic"
"""

#: Kills in a short form and in a long one.
SWEEP_KILLS = (pytest.param(12, 1), pytest.param(1000, 20, marks=pytest.mark.oracle))
RUN_KILLS = (6, pytest.param(200, marks=pytest.mark.oracle))


@pytest.fixture(scope="module")
def warm():
    with Warm() as process:
        yield process


def private_places(folder: Path) -> list[Path]:
    """Return the leftovers of a killed process, in any folder."""
    return [path for path in folder.rglob("*") if is_temporary(path)]


@pytest.mark.parametrize(("kills", "sweeps"), SWEEP_KILLS)
def test_a_sweep_that_is_killed_goes_on_to_the_same_bytes(tmp_path, warm, kills, sweeps):
    """Each is killed again and again, until it is done."""
    draw = random.Random(9)
    scenario = tmp_path / "small.toml"
    scenario.write_text(SCENARIO + '[sweep]\n"network.queue.limit" = ["4p", "8p"]\n')
    assert warm.do("sweep", str(scenario), str(tmp_path / "first"))[0] == 0  # imports take their time
    status, whole_s = warm.do("sweep", str(scenario), str(tmp_path / "whole"))
    assert status == 0
    expected = (tmp_path / "whole" / "points.parquet").read_bytes()
    killed = done = 0
    while killed < kills or done < sweeps:
        place = tmp_path / f"sweep-{done}"
        wait_s = draw.uniform(0, whole_s / 3) if killed < kills else 300.0
        status, _ = warm.do("sweep", str(scenario), str(place), kill_after_s=wait_s)
        if status == 9:
            killed += any(place.glob("runs.parquet/part-*"))
            continue
        assert status == 0
        assert (place / "points.parquet").read_bytes() == expected
        assert manifests.verify(place).state == manifests.SOUND
        assert not private_places(tmp_path)
        shutil.rmtree(place)
        done += 1
    print(f"{killed} kills with parts on disk, {done} sweeps")


@pytest.mark.parametrize("kills", RUN_KILLS)
def test_a_run_that_is_killed_leaves_the_old_result_or_the_new_one(tmp_path, warm, kills):
    """With the user's notes in it, at any time."""
    draw = random.Random(5)
    (tmp_path / "small.toml").write_text(SCENARIO + "\n[record]\npcap = true\n")
    place = tmp_path / "out"
    command = ("command", "run", str(tmp_path / "small.toml"), "--no-report", "--out", str(place), "--seed")
    whole_s = min(warm.do(*command, "0")[1] for _ in range(3))
    (place / "figures").mkdir()
    (place / "notes.txt").write_text("mine")
    (place / "figures" / "one.png").write_text("mine too")
    old, killed, replaced = 0, 0, 0
    for new in range(1, 100 * kills):
        status, _ = warm.do(*command, str(new), kill_after_s=draw.uniform(0, 1.1 * whole_s))
        assert status in (0, 9)
        killed += status == 9
        seed = Dataset.read(place).runs[0]["seed"]
        assert seed == new if status == 0 else seed in (old, new)
        assert [path.name for path in (place / CAPTURES).iterdir()] == [f"seed-{seed}.pcap"]
        assert manifests.verify(place).state == manifests.SOUND
        assert (place / "notes.txt").read_text() == "mine"
        assert (place / "figures" / "one.png").read_text() == "mine too"
        replaced += seed == new and status == 9
        old = seed
        if killed == kills:
            break
    assert warm.do(*command, "0")[0] == 0
    assert not private_places(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "small.toml"]
    print(f"{killed} kills, {replaced} of them with the new result in place")
