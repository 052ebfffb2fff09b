"""What may be completed: the words of each kind, values after a comma, keys and their values.

A kind is what an option says of its value: `metrics`, one of these; `metrics,` several with commas between them;
`keys=` a key, a sign and its value, `keys=,` or several values; `best:` a sign with a metric; `a|b` of either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ackclock.input import cli_values

#: What `words.json` holds.
Known = Mapping[str, Any]

#: What is known.
FILE = Path(__file__).parent / "words.json"

#: The gallery's entries, and with what their names begin.
GALLERY = Path(__file__).parents[1] / "reproductions"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#: Longer lists of keys are completed a name at a time.
MOST_KEYS = 40


def of(kind: str) -> Callable[[str], list[str]]:
    """What an option's value is, for `typer.Option(autocompletion=…)`."""

    def complete(incomplete: str) -> list[str]:
        return [word for word, _ in values(kind, incomplete, known())]

    complete.kind = kind  # type: ignore[attr-defined]
    return complete


@cache
def known() -> Known:
    """All that can be completed."""
    found: Known = json.loads(FILE.read_bytes())
    return found


def values(kind: str, incomplete: str, everything: Known) -> list[tuple[str, str]]:
    """The words that begin so, each with what is said of it."""
    if kind.rstrip(",").endswith("="):
        return list(_pairs(kind, incomplete, everything))
    if kind == "best:":
        sign, colon, name = incomplete.partition(":")
        if not colon:
            return [(f"{sign}:", "") for sign in ("min", "max") if sign.startswith(incomplete)]
        return [(f"{sign}:{word}", about) for word, about in _plain("metrics", name, everything)]
    if not kind.endswith(","):
        return _plain(kind, incomplete, everything)
    *taken, last = cli_values.split(incomplete)
    found = [(word, about) for word, about in _plain(kind[:-1], last, everything) if word not in taken]
    return [(",".join([*taken, word]), about) for word, about in found]


def _plain(kind: str, incomplete: str, everything: Known) -> list[tuple[str, str]]:
    words = _entries() if kind == "entries" else _several(kind, everything)
    return [(word, about) for word, about in words.items() if word.startswith(incomplete)]


def _several(kinds: str, everything: Known) -> dict[str, Any]:
    return {word: about for kind in kinds.split("|") for word, about in everything["kinds"].get(kind, {}).items()}


def _entries() -> dict[str, str]:
    """Of the gallery: its folders."""
    return dict.fromkeys(sorted(path.name for path in GALLERY.iterdir() if path.name[0] in LETTERS), "")


def _pairs(kind: str, incomplete: str, everything: Known) -> Iterator[tuple[str, str]]:
    """A key with `=` behind it; and behind that what its value may be."""
    keys = _several(kind.rstrip(",").rstrip("="), everything)
    key, sign, given = incomplete.partition("=")
    if not sign:
        yield from _keys([word for word in keys if word.startswith(key)], len(key))
        return
    of_key = keys.get(key, [])
    words = everything["kinds"].get(of_key, {}) if isinstance(of_key, str) else dict.fromkeys(of_key, "")
    *taken, last = cli_values.split(given) if kind.endswith(",") else [given]
    yield from (
        (f"{key}={','.join([*taken, word])}", about)
        for word, about in words.items()
        if word.startswith(last) and word not in taken
    )


def _keys(keys: list[str], length: int) -> Iterator[tuple[str, str]]:
    """Whole, or up to the next name."""
    least = length if len(keys) > MOST_KEYS else LONGEST_KEY
    yield from ((key, "") for key in dict.fromkeys(_step(key, least) for key in keys))


#: More letters than any key has.
LONGEST_KEY = 1000


def _step(key: str, length: int) -> str:
    """A key up to its next name."""
    dot = key.find(".", length)
    return f"{key}=" if dot < 0 else key[: dot + 1]
