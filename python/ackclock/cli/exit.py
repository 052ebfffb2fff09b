"""How the program says what it has to say, and how it ends: whichever reads its words."""

from __future__ import annotations

import codecs
import sys
from typing import Any

from ackclock.errors import AckclockError
from ackclock.system import signals

#: What ASCII has for the characters of our tables; what it has nothing for becomes a question mark.
ASCII = str.maketrans({"×": "x", "–": "-", "−": "-", "±": "+-", "µ": "u", "μ": "u", "…": "...", "’": "'", "·": "|"})


def prepare() -> None:
    """Whatever a terminal's encoding has no character for is replaced from now on."""
    codecs.register_error("ackclock.ascii", _replaced)
    for stream in (sys.stdout, sys.stderr):
        _tolerant(stream)


def _tolerant(stream: Any) -> None:
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="ackclock.ascii")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    plain = error.object[error.start : error.end].translate(ASCII)
    return "".join(letter if letter.isascii() else "?" for letter in plain), error.end


def say(message: str) -> None:
    """Standard error gets no control characters, whatever a file or folder is called."""
    print("".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in message), file=sys.stderr)


def is_unread(error: BaseException | None) -> bool:
    """Nobody reads the output any more (`ackclock … | head`): a program ends without a word then."""
    return isinstance(error, BrokenPipeError) and signals.is_output_closed()


def status(error: AckclockError | OSError) -> int:
    """Says in one line what went wrong, and gives the exit status that belongs to it."""
    if isinstance(error, AckclockError):
        say(str(error))
        return error.exit_status
    name = None if isinstance(error, BrokenPipeError) else error.filename
    say(f"{name or 'ackclock'}: {error.strerror or error}".split("\n")[0])
    return 1
