"""Calls without anything special: `ackclock capture FILE… --json` starts without Typer for them.

All else is Typer's, its messages included.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ackclock.cli import exit
from ackclock.errors import AckclockError
from ackclock.system import signals


def may_be_read(path: str | Path) -> bool:
    """Typer has nothing to say of it: it may be read, or is not there."""
    return os.access(path, os.R_OK) or not os.path.lexists(path)


def main(words: Sequence[str]) -> bool:
    """Whether it was such a call, and is done."""
    if words[:1] != ["capture"] or "--json" not in words:
        return False
    files = [word for word in words[1:] if word != "--json"]
    if not files or any(word.startswith("-") and word != "-" for word in files) or not all(map(may_be_read, files)):
        return False
    exit.prepare()
    try:
        _capture(files)
    except (AckclockError, OSError) as error:
        if not exit.is_unread(error):
            with suppress(BrokenPipeError):
                sys.exit(exit.status(error))
        signals.leave_quietly(signal.SIGPIPE)
    return True


def _capture(files: Sequence[str]) -> None:
    """As `ackclock.cli.capture` prints it."""
    from ackclock import capture

    found = capture.summarise([Path(file) for file in files])
    for note in found.notes:
        exit.say(note)
    print(json.dumps(found.analysis, allow_nan=False), flush=True)
