"""`ackclock doctor host network` between two namespaces with a real sshd, through a router with known rates."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import testbeds
from testbeds import Testbed

from ackclock.dataset import Dataset, result_kind

MISSING = testbeds.missing_requirement()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

#: Share of data in the bytes that HTB counts, 1448 of 1514: Ethernet, IPv4 and TCP with timestamps.
DATA = 1448 / 1514

#: Rates towards alice and bob, and what waits at most before each.
TO_ALICE_BPS, TO_BOB_BPS, QUEUE_P = 20e6, 10e6, 50


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    """A testbed whose router is slow to all but ssh; nothing puts packets together, which queues count; all is Reno."""
    with tempfile.TemporaryDirectory(prefix="ackclock-network-") as name, testbeds.testbed(Path(name)) as made:
        for host, device in (("alice", "data"), ("bob", "data"), ("router", "left"), ("router", "right")):
            made.inside(host, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
        for host in ("alice", "bob"):
            made.inside(host, "sysctl", "-w", "net.ipv4.tcp_congestion_control=reno")
        for device, rate_bps, ssh in (("left", TO_ALICE_BPS, "dport"), ("right", TO_BOB_BPS, "sport")):
            for words in (
                f"qdisc add dev {device} root handle 1: htb default 1",
                f"class add dev {device} parent 1: classid 1:1 htb rate {rate_bps:.0f}",
                f"class add dev {device} parent 1: classid 1:2 htb rate 1gbit",
                f"filter add dev {device} parent 1: protocol ip u32 match ip {ssh} 22 0xffff flowid 1:2",
                f"qdisc add dev {device} parent 1:1 handle 10: pfifo limit {QUEUE_P}",
            ):
                made.inside("router", "tc", *words.split())
        yield made


@pytest.fixture
def unchanged(bed: Testbed) -> Iterator[None]:
    """Whatever the test does, every host is as before in the end."""
    before = bed.state()
    yield
    kept = {name: text for name, text in bed.remaining(before, 5).items() if not name.endswith(" qdiscs")}
    assert kept == {}


def network(bed: Testbed, *words: str, config: Path | None = None, host: str = "alice") -> tuple[int, str, str]:
    valid = ("--ssh-config", str(config or bed.from_bob))
    return bed.run("doctor", "host", "network", host, *valid, *words, on="bob", timeout=60)


def responses(bed: Testbed, *words: str) -> dict[str, Any]:
    status, output, errors = network(bed, *words, "--json")
    assert status == 0, errors
    result: dict[str, Any] = json.loads(output.splitlines()[0])
    return result


def dropped(bed: Testbed, device: str) -> int:
    """Packets that a queue of the router has dropped."""
    message = bed.inside("router", "tc", "-j", "-s", "qdisc", "show", "dev", device)
    (queue,) = [each for each in json.loads(message) if each["kind"] == "pfifo"]
    drops: int = queue["drops"]
    return drops


@pytest.mark.usefixtures("unchanged")
def test_a_slow_router_is_detected_in_both_directions(bed: Testbed):
    before = dropped(bed, "left")
    result = responses(bed, "--duration", "1.5s", "--flows", "4", "--repeats", "1", "--out", str(bed.folder / "found"))
    drops = dropped(bed, "left") - before
    network = result["network"]
    to, back = network["cells"]
    for cell, rate_bps in ((to, TO_ALICE_BPS), (back, TO_BOB_BPS)):
        assert testbeds.UNPAUSED < cell["goodput_bps"]["mean"] / (rate_bps * DATA) < 1.05
        full_s = 8 * 1514 * QUEUE_P / rate_bps
        assert cell["rtt_idle_s"]["mean"] < 0.4 * full_s < cell["rtt_loaded_s"]["mean"] < 3 * full_s
        assert cell["congestion_window"]["mean"] > 0.5
    # What the queue dropped is what did not arrive, but for a packet or two that a look at the end finds under way.
    number = [run["direction"] for run in network["runs"]].index("to")
    of_data, flows = network["runs"][number], Dataset.read(bed.folder / "found").flows
    sent = flows.filter(flows["run"] == number)["sent_packets"].sum()
    assert abs(of_data["lost"] * sent - drops) <= 0.1 * drops + 10
    assert of_data["retransmitted"] > 0
    assert any("round trip grows" in finding["sentence"] for finding in result["findings"])
    _check_tables(bed.folder / "found", network)


def _check_tables(folder: Path, network: dict[str, Any]) -> None:
    data = Dataset.read(folder)
    assert result_kind.of(data.manifest) is result_kind.Kind.HOST
    assert [run["direction"] for run in data.runs] == [run["direction"] for run in network["runs"]]
    for number, run in enumerate(network["runs"]):
        flows = data.flows.filter(data.flows["run"] == number)
        sender = "this host" if run["direction"] == "to" else "alice"
        assert flows["source"].to_list() == [sender] * 4
        goodput_bps = 8 * flows["measured_bytes"].sum() / (network["duration_s"] - network["warmup_s"])
        assert goodput_bps == pytest.approx(run["goodput_bps"])
    samples = data.frame("flow_samples")
    assert set(samples["run"]) == {0, 1}
    assert samples["srtt_s"].max() > 0.02


@pytest.mark.usefixtures("unchanged")
def test_a_small_receive_buffer_is_what_limits(bed: Testbed):
    """With 16 KiB of buffer half is window: 8 KiB on a path of 20 Mb/s take 3.3 ms; here, not there, is who listens."""
    was = bed.inside("alice", "sysctl", "-n", "net.ipv4.tcp_rmem").strip()
    bed.inside("alice", "sysctl", "-w", "net.ipv4.tcp_rmem=4096 16384 16384")
    try:
        words = (
            "--duration",
            "1.5s",
            "--flows",
            "1",
            "--repeats",
            "1",
            "--direction",
            "to",
            "--server",
            "local",
            "--port",
            "5001",
        )
        result = responses(bed, *words)
    finally:
        bed.inside("alice", "sysctl", "-w", f"net.ipv4.tcp_rmem={was}")
    (cell,) = result["network"]["cells"]
    assert cell["receive_window"]["mean"] > 0.5
    assert cell["rtt_loaded_s"]["mean"] < 0.5 * 8 * 1514 * QUEUE_P / TO_ALICE_BPS  # no queue stands
    first = result["findings"][0]
    assert re.match(
        r"The receive window held one flow from this host to alice back for [\d.]+ % of the time: net.ipv4.tcp_rmem of "
        r"alice lets a connection buffer 16.4 kB, ",
        first["sentence"],
    )
    assert first["bad"]


@pytest.mark.usefixtures("unchanged")
def test_nothing_is_left_by_one_that_is_killed(bed: Testbed):
    process = bed.ackclock("doctor", "host", "network", "alice", "--ssh-config", str(bed.from_bob), on="bob")
    bed.agent("alice")
    bed.agent("bob")
    process.kill()
    process.communicate(timeout=60)


@pytest.mark.usefixtures("unchanged")
def test_a_login_that_is_rejected_is_one_line(bed: Testbed):
    config = bed.folder / "stranger_config"
    config.write_text(bed.from_bob.read_text().replace(f"{bed.folder}/login", f"{bed.folder}/stranger"))
    status, _, errors = network(bed, config=config)
    assert (status, errors) == (2, 'host "alice": not reached: root@10.1.0.2: Permission denied (publickey).\n')


@pytest.mark.usefixtures("unchanged")
def test_a_host_that_is_not_present_is_one_line(bed: Testbed):
    config = bed.folder / "nowhere_config"
    config.write_text("ConnectTimeout 1\n" + bed.from_bob.read_text())
    status, _, errors = network(bed, host="10.1.0.99", config=config)
    assert (status, len(errors.splitlines())) == (2, 1)
    assert errors.startswith('host "10.1.0.99": not reached: ')


@pytest.mark.usefixtures("unchanged")
def test_data_that_find_no_way_are_one_line(bed: Testbed):
    """The address is alice's, but the router knows nothing of it."""
    words = ("--addresses", "10.2.0.2,10.9.0.2")
    words += ("--duration", "1s", "--flows", "1", "--repeats", "1", "--direction", "to")
    bed.inside("bob", "ip", "route", "add", "10.9.0.2", "via", "10.2.0.1")
    try:
        status, _, errors = network(bed, *words, "--port", "5002")
    finally:
        bed.inside("bob", "ip", "route", "del", "10.9.0.2")
    assert (status, errors) == (
        2,
        'host "alice": found no way from this host to 10.9.0.2 port 5002; expected one (--addresses, --port, or '
        "--server local)\n",
    )
    status, _, errors = network(bed, "--addresses", "10.2.0.2,10.1.0.77")
    assert (status, errors) == (
        2, 'host "alice": found no interface with the address 10.1.0.77; expected one (--addresses)\n'
    )  # fmt: skip


def disks(bed: Testbed) -> tuple[str, ...]:
    """Folders on both hosts, in which nothing may be left."""
    return "--file", str(bed.folder / "bob"), "--file", f":{bed.folder / 'alice'}"


@pytest.mark.usefixtures("unchanged")
def test_transfers_between_disks_take_turns_with_those_between_memories(bed: Testbed):
    words = ("--duration", "1.5s", "--flows", "2", "--repeats", "1", "--out", str(bed.folder / "disks"))
    result = responses(bed, *words, *disks(bed))
    network = result["network"]
    assert [(cell["direction"], cell["medium"]) for cell in network["cells"]] == [
        ("to", "memory"), ("to", "file"), ("from", "memory"), ("from", "file")
    ]  # fmt: skip
    assert sorted(run["medium"] for run in network["runs"]) == ["file", "file", "memory", "memory"]
    for memory, file in zip(network["cells"][::2], network["cells"][1::2], strict=True):
        assert "waits" not in memory
        assert set(file["waits"]) == {"this host", "alice"}
        assert all(0 < share < 1 for share in file["waits"].values())
        assert file["goodput_bps"]["mean"] > 0.5 * testbeds.UNPAUSED * memory["goodput_bps"]["mean"]
    assert sum("with a file" in finding["sentence"] for finding in result["findings"]) == 2


@pytest.mark.usefixtures("unchanged")
def test_a_file_is_what_is_sent(bed: Testbed):
    path = bed.folder / "sent"
    path.write_bytes(bytes(100_000))
    words = ("--duration", "1s", "--flows", "1", "--repeats", "1", "--direction", "to")
    result = responses(bed, *words, "--file", str(path))
    (_, file) = result["network"]["cells"]
    assert set(file["waits"]) == {"this host"}
    assert file["goodput_bps"]["mean"] > 2e6
    assert path.read_bytes() == bytes(100_000)


@pytest.mark.usefixtures("unchanged")
def test_nothing_is_written_that_stays_by_one_that_is_killed(bed: Testbed):
    """Both agents write files that no folder lists: with the agents they are gone."""
    words = ("--duration", "20s", "--flows", "1", "--repeats", "1", "--ssh-config", str(bed.from_bob))
    process = bed.ackclock("doctor", "host", "network", "alice", *words, *disks(bed), on="bob")
    pids = bed.agent("alice"), bed.agent("bob")
    end = time.monotonic() + 60
    while not all(map(holds_a_file, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert all(map(holds_a_file, pids))
    process.kill()
    process.communicate(timeout=60)


def holds_a_file(pid: int) -> bool:
    """Return True if a process has an unlinked file open."""
    return any(link.readlink().name.endswith("(deleted)") for link in Path(f"/proc/{pid}/fd").iterdir())


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    ("places", "message"),
    [
        (["/none/of/it"], "--file: /none/of/it: found No such file or directory; expected a folder to "),
        (
            [":/none"],
            'host "alice": --file: /none: found No such file or directory; expected a folder to ',
        ),
        (["/dev/zero"], "--file: /dev/zero: found Not a regular file; expected a folder to write in, or a file in one"),
        ([""], '--file: found ""; expected a folder or file here, or :PATH for the other host'),
        (["/a", "/b"], "--file: found two places here; expected one on each side (:PATH is the other host's)"),
    ],
)
def test_places_that_cannot_be_used_are_one_line(bed: Testbed, places: list[str], message: str):
    status, _, errors = network(bed, *(word for place in places for word in ("--file", place)))
    assert (status, len(errors.splitlines())) == (2, 1)
    assert errors.startswith(message)
