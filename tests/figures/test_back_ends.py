"""One spec in both back ends: the same names, points, intervals and places of the panels."""

from __future__ import annotations

import base64
from itertools import pairwise

import numpy as np
import pytest

from ackclock.figures import figure_spec
from ackclock.figures.figure_spec import Axis, Band, Boxes, Crowd, Drawing, Heat, Line, Panel, Points, Stack, Strokes
from ackclock.figures.plots import drawing as print_drawing
from ackclock.figures.report import drawing as page_drawing

X = np.arange(4.0)
LAYERS = [
    Line("line", X, X, figure_spec.BLUE),
    Line("unlisted", X, X, figure_spec.BLUE, listed=False),
    Line("", X, X + 1, figure_spec.RED, steps=True),
    Strokes("strokes", X, X, X + 1, X, figure_spec.GREEN),
    Points("points", X, X, figure_spec.PINK, "s", 3.0, X - 0.5, X + 0.5, "dash"),
    Points("marks", X, X, figure_spec.SKY, "x"),
    Band("band", X, X - 1, X + 1, figure_spec.ORANGE),
    Stack(("lower", "upper"), np.arange(5.0), np.ones((2, 4)), (figure_spec.RED, figure_spec.SKY)),
]


def panels(count: int) -> list[Panel]:
    return [Panel(Axis("y"), LAYERS[:1], x=Axis(f"x{number}")) for number in range(count)]


def numbers(column: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(column["bdata"]), f"<{column['dtype']}")


def test_both_legends_list_each_name_a_single_time():
    drawing = Drawing("a", "A", "", [Panel(Axis("y"), LAYERS), Panel(Axis("z"), LAYERS)], Axis("x"))
    (legend,) = print_drawing.figure(drawing).legends
    printed = [text.get_text() for text in legend.get_texts()]
    listed = [trace["name"] for trace in page_drawing.figure(drawing, 1000).data if trace["showlegend"]]
    assert sorted(printed) == sorted(listed) == ["band", "line", "lower", "marks", "points", "strokes", "upper"]


def test_a_figure_without_names_has_no_legend():
    drawing = Drawing("a", "A", "", [Panel(Axis("y"), LAYERS[1:3])], Axis("x"))
    assert print_drawing.figure(drawing).legends == []
    assert page_drawing.figure(drawing, 1000).layout["showlegend"] is False


def test_intervals_stay_with_their_points_where_a_page_shows_only_some():
    x = np.arange(5000.0)
    points = Points("p", x, x, figure_spec.BLUE, size=3.0, low=x - x / 10, high=x + x / 5)
    drawing = Drawing("a", "A", "", [Panel(Axis("y"), [points])], Axis("x"))
    (trace,) = page_drawing.figure(drawing, 300).data
    y = numbers(trace["y"])
    assert y.size == 300
    np.testing.assert_allclose(numbers(trace["error_y"]["array"]), y / 5, rtol=1e-6)
    np.testing.assert_allclose(numbers(trace["error_y"]["arrayminus"]), y / 10, rtol=1e-6)


@pytest.mark.parametrize(("count", "columns"), [(1, 2), (3, 2), (4, 2), (5, 3), (3, 1)])
def test_panels_of_a_page_fill_a_grid_and_do_not_overlap(count: int, columns: int):
    made = page_drawing.figure(Drawing("a", "A", "", panels(count), columns=columns), 1000)
    for layout, across in (
        (made.layout, min(columns, count)),
        (made.narrow or made.layout, 1 if columns > 1 else columns),
    ):
        boxes = {}
        for number in range(count):
            name = "" if number == 0 else str(number + 1)
            boxes[divmod(number, across)] = [*layout[f"xaxis{name}"]["domain"], *layout[f"yaxis{name}"]["domain"]]
        for (row, column), (left, right, bottom, top) in boxes.items():
            assert 0 <= left < right <= 1
            assert 0 <= bottom < top <= 1
            if (row, column + 1) in boxes:
                assert right < boxes[row, column + 1][0]
            if (row + 1, column) in boxes:
                assert bottom > boxes[row + 1, column][3]


def test_heat_maps_have_the_same_values_and_boxes_their_extremes():
    values = np.array([[1.0, np.nan], [3.0, 4.0]])
    names = figure_spec.named("k", ["a", "b"])
    drawing = Drawing("a", "A", "", [Panel(names, [Heat(values, "%")], x=names, title="t (%)")])
    (trace,) = page_drawing.figure(drawing, 1000).data
    assert trace["z"] == [[1.0, None], [3.0, 4.0]]
    axes, _ = print_drawing.figure(drawing).axes
    assert [text.get_text() for text in axes.texts] == ["1.00", "3.00", "4.00"]
    box = Boxes("", [0.0], [[1.0, 2.0, 9.0]], figure_spec.BLUE)
    (axes,) = print_drawing.figure(Drawing("b", "B", "", [Panel(Axis("y"), [box])], names)).axes
    ends = [float(value) for line in axes.lines for value in line.get_ydata()]
    assert (min(ends), max(ends)) == (1.0, 9.0)


def test_values_over_decades_have_a_logarithmic_axis_with_zero_at_its_edge():
    assert figure_spec.by_decades(Axis("y"), [0.0, 1.0, 99.0]) == Axis("y")
    assert figure_spec.by_decades(Axis("y"), [-1.0, 1.0, 1e3]) == Axis("y")
    axis = figure_spec.by_decades(Axis("y", from_zero=True), [0.0, None, 0.5, 200.0])
    assert axis.logarithmic
    assert [text for _, text in axis.ticks] == ["0", "0.1", "1", "10", "100"]
    points = Points("p", X, np.array([0.0, 0.5, 20.0, 200.0]), figure_spec.BLUE, low=X - 1, high=X + 300)
    drawing = Drawing("a", "A", "", [Panel(axis, [figure_spec.on_axis(points, axis)])], Axis("x"))
    (axes,) = print_drawing.figure(drawing).axes
    assert axes.get_yscale() == "log"
    assert axes.get_ylim()[0] == pytest.approx(axis.low)
    assert axes.lines[0].get_ydata()[0] == pytest.approx(axis.low)  # zero is at the edge, not beyond it
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "0.1", "1", "10", "100"]
    made = page_drawing.figure(drawing, 1000)
    assert made.layout["yaxis"]["range"] == pytest.approx([np.log10(axis.low), np.log10(300)])
    assert made.layout["yaxis"]["ticktext"] == ["0", "0.1", "1", "10", "100"]
    assert made.layout["yaxis"]["tickformat"] == "~g"  # without it "2" stands between "0.1" and "1"


def test_lines_differ_by_marker_or_dashes_in_print():
    lines = figure_spec.Lines(X, np.zeros((4, 7)), tuple("abcdefg"), ("g",) * 7)
    (axes,) = print_drawing.figure(
        Drawing("a", "A", "", [Panel(Axis("y"), [*figure_spec.curves(lines)])], Axis("x"))
    ).axes
    looks = [(line.get_marker(), line.get_linestyle()) for line in axes.lines]
    assert len(set(looks)) == 7


def test_many_flows_are_a_cloud_with_the_mean_of_each_group():
    values = np.tile(np.arange(20.0), (4, 1))
    labels = tuple(f"flow {number}" for number in range(20))
    groups = ("a",) * 17 + ("b",) * 3
    layers = list(figure_spec.curves(figure_spec.Lines(X, values, labels, groups), 2.0))
    assert [type(layer) for layer in layers] == [Crowd, Band, Line, Line, Line, Line]
    assert layers[2].name == "a: mean"
    assert set(layers[2].y) == {16.0}  # twice the mean of 0 to 16
    assert [layer.name for layer in layers[3:]] == ["flow 17", "flow 18", "flow 19"]
    few = list(figure_spec.curves(figure_spec.Lines(X, values[:, :7], labels[:7], groups[:7])))
    assert [(layer.colour, layer.dash) for layer in few[::6]] == [
        (figure_spec.BLUE, "solid"),
        (figure_spec.BLUE, "dash"),
    ]
    assert all(one.x[0] == other.x[0] for one, other in pairwise(few))
