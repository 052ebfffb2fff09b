"""The command that reaches a host: the OpenSSH client with the user's own configuration."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ackclock.errors import InputError

#: A host as the user's ssh knows it, with a login or without. It begins with no hyphen, so it is never an option.
DESTINATION = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,63}@)?[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")

#: What `DESTINATION` is, for messages.
EXPECTED = 'a host as ssh knows it, such as "alice" or "root@alice.example.net"'

#: Nobody is asked for a password; nothing else goes over the connection, and it is no other's, so that its end is
#: seen. What checks host keys and logins stays as the user has it.
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
    """The words that run a line of sh on a host; `config` is for ssh's `-F`. Raises `InputError` for no host's name."""
    around = _around(destination, config)
    options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", *around, *options, "-T", "--", destination, script]


def host_name(destination: str, config: Path | None = None) -> str:
    """What ssh connects to: the name or address behind an alias. Raises `InputError` for no host's name."""
    words = ["ssh", *_around(destination, config), "-G", "--", destination]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    found = dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
    return found.get("hostname", destination.rpartition("@")[2])


def _around(destination: str, config: Path | None) -> list[str]:
    if not DESTINATION.fullmatch(destination):
        raise InputError(f"address: found {destination!r}; expected {EXPECTED}")
    return ["-F", str(config)] if config else []
