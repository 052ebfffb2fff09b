"""The crate of `ackclock new stack --quinn`: a QUIC stack in use, behind `ackclock.h`."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from small_networks import dumbbell

import ackclock as ac
from ackclock import metrics, stacks
from ackclock.errors import InputError
from ackclock.scaffold import new, stack_contract
from ackclock.scenario import planning

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs Rust")

#: Dependencies are compiled once for all tests, and kept.
TARGET = Path(__file__).parents[2] / "target" / "quinn-stack"

SCENARIO = f"""
duration = "20s"
warmup = "5s"
{dumbbell("10Mbit", "40ms")}
[[flows]]
name = "own"
transport = "quic"
stack = "quinn"
"""


def build(folder: Path, *replacement: str) -> Path:
    """Build the crate, with a replacement in its text; return the library."""
    new.write(folder, new.render_stack(folder, "quinn", quinn=True))
    if replacement:
        source = folder / "src" / "lib.rs"
        text = source.read_text()
        assert text.count(replacement[0]) == 1
        source.write_text(text.replace(*replacement))
    TARGET.mkdir(parents=True, exist_ok=True)
    with (TARGET / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["cargo", "build", "--release", "--locked", "--quiet"]
        env = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "RUSTFLAGS": ""}
        built = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert (built.returncode, built.stderr) == (0, "")
        return Path(shutil.copy(TARGET / Path(new.QUINN_LIBRARY).relative_to("target"), folder / "quinn.so"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = build(tmp_path_factory.mktemp("quinn"))
    stacks.register(f"quinn={library}")
    return library


def run(keys: str) -> ac.Dataset:
    return ac.run(planning.loads(SCENARIO + keys).plan(), seeds=[1])


def test_quinn_keeps_the_contract(library: Path) -> None:
    clauses = list(stack_contract.clauses(library))
    assert len(clauses) == 8
    assert [clause for clause in clauses if clause.violations] == []


def test_random_numbers_of_the_operating_system_are_reported(tmp_path: Path) -> None:
    broken = build(tmp_path, "endpoint.rng_seed(stack_seed.try_into().ok());", "drop(stack_seed);")
    checked = next(each for each in stack_contract.clauses(broken) if "the same seed" in each.text)
    assert "another payload in the second run" in checked.violations[0]


@pytest.mark.parametrize("congestion", ["reno", "cubic"])
def test_a_flow_fills_a_link(library: Path, congestion: str) -> None:
    """A buffer of one bandwidth-delay product keeps the link busy for both (Appenzeller et al., SIGCOMM 2004)."""
    data = run(f'congestion = "{congestion}"\n')
    (view,) = metrics.runs(data)
    assert 0.98 < metrics.value(view, "utilisation") < 1.001  # type: ignore[operator]
    (flow,) = data.flows.iter_rows(named=True)
    assert flow["congestion"] == congestion
    assert 0 < flow["retransmissions"] < 0.02 * flow["sent_packets"]
    assert flow["recoveries"] is None


def test_the_own_controller_takes_its_options(library: Path) -> None:
    deep, gentle = (run(f'options = "beta={beta}"\n').flows["retransmissions"][0] for beta in (0.5, 0.9))
    assert gentle > deep > 0
    with pytest.raises(InputError, match=r'ackclock_new returned NULL for options = "beta=2"; expected an endpoint'):
        run('options = "beta=2"\n')


def test_bbr_is_rejected(library: Path) -> None:
    """It draws from the operating system."""
    with pytest.raises(InputError, match=r'returned NULL for congestion = "bbr"; expected an endpoint'):
        run('congestion = "bbr"\n')


def test_datagrams_have_the_size_of_the_path(library: Path) -> None:
    (flow,) = run('mtu = "1300B"\n').flows.iter_rows(named=True)
    assert 1250 < flow["sent_bytes"] / flow["sent_packets"] <= 1300
