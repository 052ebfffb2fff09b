"""What the options of `ackclock doctor host network` ask for, checked: the option, what was found, what is expected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ackclock.doctor.network.endpoints import checked
from ackclock.doctor.network.files import parse_files
from ackclock.doctor.network.test_matrix import FROM, HERE, THERE, TO, TestPlan
from ackclock.errors import InputError
from ackclock.hosts import ssh
from ackclock.input import cli_values, units
from ackclock.input.fields import shown
from ackclock.system.files import readable

#: Least and most connections at a time.
FEWEST, MOST = 1, 300

#: A transfer lasts so long, in seconds: time for a few round trips, and less than the kernel remembers the least one.
SHORTEST_S, LONGEST_S = 1.0, 300.0

DIRECTIONS = {TO: (TO,), FROM: (FROM,), "both": (TO, FROM)}


def of_network(  # noqa: PLR0913, PLR0917 (each is an option of the command line)
    host: str,
    for_: str,
    flows: str,
    direction: str,
    repeats: int,
    listen: str,
    port: int | None,
    data: str | None,
    files: Sequence[str],
    ssh_config: Path | None,
) -> TestPlan:
    """What is to be measured. Raises `InputError`."""
    if not ssh.DESTINATION.fullmatch(host):
        raise InputError(f"HOST: found {shown(host)}; expected {ssh.EXPECTED}")
    if direction not in DIRECTIONS:
        raise InputError(f"--direction: found {shown(direction)}; expected {', '.join(DIRECTIONS)}")
    if listen not in (THERE, HERE):
        raise InputError(f"--listen: found {shown(listen)}; expected {THERE} or {HERE}")
    if ssh_config is not None and not ssh_config.is_file():
        raise InputError(f"--ssh-config: found no file {readable(ssh_config)}; expected a configuration of ssh's")
    return TestPlan(
        host,
        _flows(flows),
        DIRECTIONS[direction],
        _time_s(for_),
        repeats,
        listen,
        port,
        checked(cli_values.items(data)) if data is not None else (),
        parse_files(files),
        ssh_config.absolute() if ssh_config else None,
    )


def _flows(text: str) -> tuple[int, ...]:
    words = cli_values.items(text)
    numbers = tuple(int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 9)
    wanted = len(numbers) == len(words) == len(set(numbers)) and all(FEWEST <= each <= MOST for each in numbers)
    if not wanted:
        raise InputError(
            f"--flows: found {shown(text)}; expected different numbers from {FEWEST} to {MOST}, such as 1,10"
        )
    return numbers


def _time_s(text: str) -> float:
    try:
        found_s = units.time_s(text)
    except ValueError as error:
        raise InputError(f"--for: found {shown(text)}; {error}") from error
    if not SHORTEST_S <= found_s <= LONGEST_S:
        raise InputError(f"--for: found {shown(text)}; expected a time from {SHORTEST_S:g}s to {LONGEST_S:g}s")
    return found_s
