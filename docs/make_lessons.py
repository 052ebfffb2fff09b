"""Makes the page of the lessons of `ackclock explore`, with a picture of each: `docs/guides/lessons.md`.

The texts are those of the page (`python/ackclock/explore/lessons`), pictures and tables are runs of their scenarios.
The page is not kept in the repository; `tests/explore/test_lessons.py` checks what the texts state.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parent))

from claims import write

from ackclock.explore import runs
from ackclock.explore.lessons import Lesson, lessons
from ackclock.figures.plots.style import COLOURS, styled

GUIDES = Path(__file__).resolve().parent / "guides"

INTRODUCTION = """<!-- Made by docs/make_lessons.py from python/ackclock/explore/lessons: edit those. -->

# Twelve lessons

A course on congestion control, buffers and queues in twelve settings. Each lesson has a text, a picture of what the
packet engine makes of its setting (A, solid) and of another one that it is compared with (B, dashed), and three
questions. You can read it as it is; to try the questions, start `ackclock explore`, choose the lesson and
[turn the knobs](explore.md). You can also save a lesson's scenario to a file and run it with `ackclock run`.
"""

#: The panels of a picture, with their axes.
PANELS = (("cwnd", "windows\n(segments)"), ("goodput", "goodput\n(Mb/s)"), ("queue", "queueing\ndelay (ms)"))

#: Settings and how their lines are drawn.
DASHES = {"A": "solid", "B": (0, (4, 2))}

#: One setting's parts, by name.
Parts = Mapping[str, Any]


def main() -> None:
    """Write the page and the pictures."""
    sections = [section(number, lesson) for number, lesson in enumerate(lessons(), 1)]
    write(GUIDES / "lessons.md", "\n".join([INTRODUCTION, *sections]))


def section(number: int, lesson: Lesson) -> str:
    """Run a lesson's settings, draw its picture and return its section."""
    texts = {"A": lesson.scenario, **({"B": lesson.compare} if lesson.compare else {})}
    settings = {name: {part["part"]: part for part in runs.parts(runs.prepared(text))} for name, text in texts.items()}
    picture = f"lessons-{lesson.name}.png"
    draw({name: parts["picture"] for name, parts in settings.items()}).savefig(GUIDES / picture, dpi=110)
    questions = "\n".join(f"{place}. {question}" for place, question in enumerate(lesson.questions, 1))
    tables = "\n\n".join(table(name, parts["numbers"]) for name, parts in settings.items())
    return f"""
## {number}. {lesson.title}

{lesson.text}

![Windows, goodput and queueing delay over time]({picture})

**Watch**: {lesson.watch}

{tables}

**Questions**

{questions}

```toml
{lesson.scenario.strip()}
```
"""


def table(setting: str, part: Parts) -> str:
    """Return who got what, a column a group, as Markdown."""
    heads, rows = part["groups"]["heads"], part["groups"]["rows"]
    lines = [[f"{setting}", *(row[0] for row in rows)], ["---"] * (1 + len(rows))]
    lines += [[head, *(row[place] for row in rows)] for place, head in enumerate(heads[1:], 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@styled
def draw(pictures: Mapping[str, Parts]) -> Figure:
    """Return the figure of a lesson: panels over time, A solid and B dashed, a colour for each group."""
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.subplots(len(PANELS), sharex=True)
    groups = list(dict.fromkeys(group for picture in pictures.values() for group in picture["groups"]))
    colours = {group: COLOURS[place % len(COLOURS)] for place, group in enumerate(groups)}
    for (panel, label), ax in zip(PANELS, axes, strict=True):
        for setting, picture in pictures.items():
            for group, times_s, values in curves(panel, picture):
                colour = colours.get(group, "#222222")
                ax.plot(times_s, values, color=colour, linestyle=DASHES[setting], linewidth=0.9)
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0)
    axes[-1].set_xlabel("time (s)")
    axes[-1].set_xlim(0, next(iter(pictures.values()))["duration_s"])
    legend(axes[0], colours, list(pictures))
    return figure


def curves(panel: str, picture: Parts) -> Iterator[tuple[str, Sequence[float], np.ndarray]]:
    """Yield the curves of a panel: the group's name (empty for the queue), times in s, and values."""
    part = picture[panel]
    lines = part["lines"] if panel == "cwnd" else part["groups"] if panel == "goodput" else [{"group": "", **part}]
    for line in lines:
        yield line["group"], part["t"], np.array(line["y"], dtype=float)


def legend(ax: Axes, colours: Mapping[str, str], settings: Sequence[str]) -> None:
    """Put names of groups and settings above the panels."""
    for group, colour in colours.items():
        ax.plot([], [], color=colour, label=group)
    for setting in settings if len(settings) > 1 else ():
        ax.plot([], [], color="#222222", linestyle=DASHES[setting], label=setting)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=6, frameon=False, borderaxespad=0.2)


if __name__ == "__main__":
    main()
