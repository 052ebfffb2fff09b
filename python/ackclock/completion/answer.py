"""The answer to a shell: its line as words, the command and the option that the last word belongs to, and what fits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ackclock.completion import words

#: Where a shell's question stands.
ASKED = "_ACKCLOCK_COMPLETE"

#: What bash cuts words at (`COMP_WORDBREAKS`), of what our words have.
BREAKS = "=:"


class Line(NamedTuple):
    """The words before the cursor's, and what there is of that."""

    words: Sequence[str]
    incomplete: str


def main() -> bool:
    """Prints what may stand there, if a shell asks that we know; whether it does."""
    shell = os.environ.get(ASKED, "").removeprefix("complete_")
    if shell not in SHELLS:
        return False
    read, show = SHELLS[shell]
    line = read(os.environ)
    show(line, completions(line, words.known()))
    return True


def completions(line: Line, everything: words.Known) -> list[tuple[str, str]]:
    """What may stand where the cursor is, each with what is said of it."""
    place = reached(line.words, everything["command"])
    if place.kind is not None:
        return words.values(place.kind, line.incomplete, everything)
    return _joined(line.incomplete, place, everything) or _free(line.incomplete, place, everything)


class Place(NamedTuple):
    """The command, the kind of the option's value that comes now, and how many arguments there were."""

    command: words.Known
    kind: str | None
    arguments: int


def reached(typed: Sequence[str], command: words.Known) -> Place:
    """Where words lead."""
    option, left, arguments = None, 0, 0
    for word in typed:
        if left:
            left -= 1  # the word was an option's value
        elif option := command.get("options", {}).get(word):
            left = _values(option)
        elif not arguments and word in command.get("commands", {}):
            command = command["commands"][word]
        else:
            arguments += not word.startswith("-")
    return Place(command, option["kind"] if option and left else None, arguments)


def _values(option: words.Known) -> int:
    """How many words follow an option."""
    return 0 if option["kind"] is None else int(option.get("values", 1))


def _joined(incomplete: str, place: Place, everything: words.Known) -> list[tuple[str, str]]:
    """An option with its value behind `=`."""
    name, _, value = incomplete.partition("=")
    kind = place.command.get("options", {}).get(name, {}).get("kind") if "=" in incomplete else None
    return [(f"{name}={word}", about) for word, about in words.values(kind, value, everything)] if kind else []


def _free(incomplete: str, place: Place, everything: words.Known) -> list[tuple[str, str]]:
    """Options, commands, arguments."""
    if incomplete.startswith("-"):
        return _named(place.command.get("options", {}), incomplete)
    commands = {} if place.arguments else place.command.get("commands", {})
    return _named(commands, incomplete) + _arguments(incomplete, place, everything)


def _arguments(incomplete: str, place: Place, everything: words.Known) -> list[tuple[str, str]]:
    kinds = place.command.get("arguments", [])
    return words.values(kinds[min(place.arguments, len(kinds) - 1)], incomplete, everything) if kinds else []


def _named(several: Mapping[str, Any], incomplete: str) -> list[tuple[str, str]]:
    return [(name, one["help"]) for name, one in several.items() if name.startswith(incomplete)]


def _of_bash(environment: Mapping[str, str]) -> Line:
    """Words with lines between them; `a=b` is three words for bash, and one for us."""
    text, place = environment.get("COMP_WORDS", ""), int(environment.get("COMP_CWORD", "0"))
    every = text.split("\n") if "\n" in text else text.split(" ")
    joined: list[str] = []
    for word in [*every, *[""] * (place + 1 - len(every))][: place + 1]:
        if joined and (word in BREAKS or joined[-1][-1:] in BREAKS) and word:
            joined[-1] += word
        elif not joined or joined[-1][-1:] not in BREAKS or not joined[-1]:
            joined.append(word.lstrip("'\""))
    return Line(joined[1:-1], joined[-1] if len(joined) > 1 else "")


def _of_others(environment: Mapping[str, str]) -> Line:
    text = environment.get("_TYPER_COMPLETE_ARGS", "")
    every = [word.lstrip("'\"").replace("\\", "") for word in text.split()]
    return Line(every[1:], "") if not text or text[-1].isspace() else Line(every[1:-1], every[-1])


def _bash(line: Line, found: Sequence[tuple[str, str]]) -> None:
    """Only what comes after the last place where bash cuts."""
    cut = max(line.incomplete.rfind(sign) for sign in BREAKS) + 1
    print("\n".join(word[cut:] for word, _ in found))


def _zsh(line: Line, found: Sequence[tuple[str, str]]) -> None:
    each = [f'"{_escaped(word)}"' + (f':"{_escaped(about)}"' if about else "") for word, about in found]
    print("_arguments '*: :((" + "\n".join(each) + "))'" if each else "_files")


def _escaped(text: str) -> str:
    return text.replace('"', '""').replace("'", "''").replace("$", "\\$").replace("`", "\\`").replace(":", "\\\\:")


def _fish(line: Line, found: Sequence[tuple[str, str]]) -> None:
    if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        sys.exit(not found)  # without words of ours, fish completes files
    print("\n".join(f"{word}\t{about}" if about else word for word, about in found))


#: Shell → how its line is read, and how it is told.
SHELLS: Mapping[str, tuple[Callable[[Mapping[str, str]], Line], Callable[[Line, Sequence[tuple[str, str]]], None]]] = {
    "bash": (_of_bash, _bash),
    "zsh": (_of_others, _zsh),
    "fish": (_of_others, _fish),
}
