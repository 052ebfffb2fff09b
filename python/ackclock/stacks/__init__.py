"""Transport stacks of users (`--stack NAME=lib.so`): shared libraries with the functions of `ackclock.h`.

Only the command line brings one: a scenario has its name alone. A library is loaded in a process of its own
(`host.py`), so that a crash or an endless loop in it is an error of the run. That process is a script for the Python
that runs ackclock: it can load any library without being compiled or installed.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from ackclock.errors import InputError
from ackclock.input.fields import shown
from ackclock.system import files

#: The C header, which users include.
HEADER = Path(__file__).parent / "ackclock.h"

#: Name of a stack. It is a file name, and a word in tables.
NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")

#: The stack that is compiled in.
BUILT_IN = "noq"

#: The largest library that is hashed.
MAX_BYTES = 1 << 30

_REGISTERED: dict[str, dict[str, str]] = {}


def register(given: str) -> dict[str, str]:
    """Make `NAME=FILE` known to scenarios of this process; return what a plan has of it. Raises `InputError`."""
    name, sign, path = given.partition("=")
    if not sign or not path or not NAME.fullmatch(name):
        expected = "NAME=FILE, such as mine=./mine.so, with up to 31 of a–z, 0–9, _ and - in the name"
        raise InputError(f"--stack: found {shown(given)}; expected {expected}")
    if name == BUILT_IN:
        raise InputError(f"--stack: found {shown(name)}, the built-in stack; expected a name that is not taken")
    sha256 = hashlib.sha256(files.read_bytes(Path(path), MAX_BYTES)).hexdigest()
    option = {"name": name, "file": str(Path(path).absolute()), "sha256": sha256}
    restore(option)
    return option


def restore(option: Mapping[str, str]) -> None:
    """Make the stack of a plan's option known in a process that has not done so."""
    _REGISTERED[option["name"]] = dict(option)


def names() -> list[str]:
    """Return the names that a scenario may use, the built-in one first."""
    return [BUILT_IN, *sorted(_REGISTERED)]


def command(name: str) -> list[str]:
    """Return the command that hosts a stack. Raises `InputError` for one that was not brought."""
    if name not in _REGISTERED:
        raise InputError(f"stack {shown(name)}: found no such stack; expected --stack {name}=FILE")
    return host_command(_REGISTERED[name]["file"])


def host_command(library: Path | str) -> list[str]:
    """Return the command that hosts a library: an isolated Python with the standard library alone."""
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("host.py")), str(Path(library).absolute())]
