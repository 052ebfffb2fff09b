"""Completion in a shell: what may stand where the cursor is, in the time of a key press.

A shell calls the program with `_ACKCLOCK_COMPLETE` and the line so far, as Typer's scripts do
(`ackclock --install-completion`). Nothing is imported to answer: all that can be completed is in `words.json`, which
`ackclock.cli.completing` makes of the commands, the cards, the metrics and the keys of a scenario.
"""

from __future__ import annotations

from ackclock.completion.answer import main

__all__ = ["main"]
