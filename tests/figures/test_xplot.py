"""Files of xplot: read here as its grammar has them."""

from __future__ import annotations

import numpy as np

from ackclock import metrics
from ackclock.figures import capture_figures, figure_spec, xplot
from ackclock.figures.figure_spec import Axis, Drawing, Line, Panel, Points, Reference, Stack, Strokes

#: A command's operands by its name; those with none are colours, text follows texts.
PLACES = {"line": 4, "x": 2, "dot": 2, "diamond": 2, "uarrow": 2, "darrow": 2, "box": 2, "rtext": 2}
COLOURS = {"white", "red", "green", "pink", "blue", "orange", "yellow", "purple"}


def read(lines: list[str]) -> dict[str, list[list[float]]]:
    """The commands of a file and their operands."""
    assert lines[0] == "timeval double"
    assert lines[1:6:2] == ["title", "xlabel", "ylabel"]
    assert lines[-1] == "go"
    result: dict[str, list[list[float]]] = {}
    rest = iter(lines[7:-1])
    for line in rest:
        command, *operands = line.split()
        if command in PLACES:
            assert len(operands) == PLACES[command]
            result.setdefault(command, []).append([float(operand) for operand in operands])
            if command == "rtext":
                next(rest)
        else:
            assert line in COLOURS
    return result


def drawing(*layers: figure_spec.Layer, **more: object) -> Drawing:
    panel = Panel(Axis("Level (kB)"), layers, **more)  # type: ignore[arg-type]
    return Drawing("by hand", "Über α → ω", "", [panel], figure_spec.over_time(0.0, 3.0))


def test_layers_become_commands():
    x, y = np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 4.0])
    lines = list(
        xplot.lines(
            drawing(
                Line("a", x, y, figure_spec.BLUE),
                Strokes("b", x, y, x, y + 1, figure_spec.RED),
                Points("c", x, np.array([1.0, np.nan, 2.0]), figure_spec.GREEN, "x"),
                references=(Reference(2.0, "depth\n2 kB"),),
            )
        )
    )
    result = read(lines)
    assert result["line"][:2] == [[0, 1, 1, 1], [1, 1, 2, 4]]
    assert result["line"][2:5] == [[0, 1, 0, 2], [1, 1, 1, 2], [2, 4, 2, 5]]
    assert result["line"][5] == [0, 2, 3, 2]  # across
    assert result["x"] == [[0, 1], [2, 2]]
    assert "depth 2 kB" in lines
    assert lines[2] == "?ber ? -> ?"  # ASCII only


def test_steps_and_stacks_have_corners():
    x = np.array([0.0, 1.0, 2.0])
    assert read(list(xplot.lines(drawing(Line("", x, np.array([1.0, 3.0, 3.0]), figure_spec.BLUE, steps=True)))))[
        "line"
    ] == [
        [0, 1, 1, 1],
        [1, 1, 1, 3],
        [1, 3, 2, 3],
    ]
    stack = Stack(("a", "b"), x, np.array([[1.0, 2.0], [10.0, 20.0]]), (figure_spec.RED, figure_spec.SKY))
    assert [0, 11, 1, 11] in read(list(xplot.lines(drawing(stack))))["line"]


def test_every_kind_of_a_capture_can_be_read(result):
    view = next(iter(metrics.runs(result.data)))
    for kind in ("sequence", "pipe", "rtt", "limits", "stalls"):
        assert read(list(xplot.lines(capture_figures.KINDS[kind](view))))["line"]
