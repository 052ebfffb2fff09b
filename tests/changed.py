"""Scenarios of tests that differ in a few words."""

from __future__ import annotations


def changed(text: str, *changes: tuple[str, str]) -> str:
    """The text with other words; what is to be changed must be there."""
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text
