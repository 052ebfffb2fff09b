"""Commands of the OpenSSH client, with the user's own configuration.

Used by `agent`, by the checks of a testbed's addresses, and by `ackclock doctor host network`.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ackclock.errors import InputError

#: A host's name for ssh, with a login or without. It begins with no hyphen, so it is never an option.
DESTINATION = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,63}@)?[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")

#: A description of `DESTINATION`, for messages.
EXPECTED = 'a host as ssh knows it, such as "alice" or "root@alice.example.net"'

#: No prompt for a password, no forwarding, and no connection sharing, so that the end of the connection is noticed.
#: Host keys and logins are checked as the user has configured it.
OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ControlMaster": "no",
    "ControlPath": "none",
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "RequestTTY": "no",
}


def command(destination: str, script: str, config: Path | None = None) -> list[str]:
    """Return the command that runs a line of sh on a host; `config` is for `ssh -F`. Raises `InputError`."""
    target = _target_options(destination, config)
    options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", *target, *options, "-T", "--", destination, script]


def host_name(destination: str, config: Path | None = None) -> str:
    """Return the name or address behind an alias of the configuration. Raises `InputError` for a bad name."""
    words = ["ssh", *_target_options(destination, config), "-G", "--", destination]
    output = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    settings = dict(line.split(" ", 1) for line in output.splitlines() if " " in line)
    return settings.get("hostname", destination.rpartition("@")[2])


def _target_options(destination: str, config: Path | None) -> list[str]:
    if not DESTINATION.fullmatch(destination):
        raise InputError(f"address: found {destination!r}; expected {EXPECTED}")
    return ["-F", str(config)] if config else []
