"""Lessons: presets with a question, a text, three questions to answer by turning knobs, and what to watch.

A lesson is a TOML file in `lessons/`: `title`, `text`, `watch`, `questions`, `scenario` (a scenario's text), and
`compare`, changes that give the setting B, if it has one. The docs' course is made from the same files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ackclock.explore.changes import changed
from ackclock.input.source import read_toml

FOLDER = Path(__file__).parent / "lessons"


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson; `compare` is the text of its setting B, empty without one."""

    name: str
    title: str
    text: str
    watch: str
    questions: tuple[str, ...]
    scenario: str
    compare: str = ""


@cache
def lessons() -> tuple[Lesson, ...]:
    """Return all lessons in the order of the course, which is that of their files' names."""
    return tuple(_lesson(path) for path in sorted(FOLDER.glob("*.toml")))


def _lesson(path: Path) -> Lesson:
    content: Mapping[str, Any] = read_toml(path)
    scenario, other = content["scenario"], content.get("compare", {})
    return Lesson(
        name=path.stem.split("-", 1)[1],
        title=content["title"],
        text=content["text"].strip(),
        watch=content["watch"].strip(),
        questions=tuple(content["questions"]),
        scenario=scenario,
        compare=changed(scenario, [{"key": key, "value": value} for key, value in other.items()]) if other else "",
    )
