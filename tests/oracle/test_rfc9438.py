"""The average windows of RFC 9438, tables 1 to 3. `response` says how they are measured."""

from __future__ import annotations

import math

import pytest
from oracle import formulas, integer_windows, response
from oracle.response import FRACTIONS, RENO, WHOLE_SEGMENTS, Cell, cells

TOLERANCE = 0.05

#: Linux's whole segments at 1e-3: an epoch lasts some 25 round trips, and the two of them that see and repair the loss
#: weigh; the tables leave them out.
TOLERANCE_OF_SHORT_EPOCHS = 0.07

#: Table 3: Mb/s → average window, and the loss rates of Reno and of CUBIC (C = 0.4) with 1500 B packets and 0.1 s.
TABLE_3 = {
    1: (8.3, 2.0e-2, 2.0e-2),
    10: (83.3, 2.0e-4, 2.9e-4),
    100: (833.3, 2.0e-6, 1.4e-5),
    1000: (8333.3, 2.0e-8, 6.3e-7),
    10000: (83333.3, 2.0e-10, 2.9e-8),
}


@pytest.mark.parametrize("cell", cells(range(2, 9), reno=True) + cells(range(2, 9), reno=False), ids=str)
def test_the_formulas_make_tables_1_and_2(cell):
    window = formulas.table_window(1 / cell.period, cell.rtt_s, cell.c)
    assert cell.published == pytest.approx(window, rel=5e-4, abs=0.5)


@pytest.mark.parametrize("megabits", TABLE_3)
def test_the_formulas_make_table_3(megabits):
    window, reno, cubic = TABLE_3[megabits]
    own_window, own_reno = formulas.table_loss(megabits * 1e6, 0.1, 1500, None)
    assert own_window == pytest.approx(window, rel=5e-3)
    assert own_reno == pytest.approx(reno, rel=0.05)
    assert formulas.table_loss(megabits * 1e6, 0.1, 1500, 0.4)[1] == pytest.approx(cubic, rel=0.05)


def assert_as_published(cell: Cell, method: response.Method) -> None:
    assert response.measure(cell, method).window == pytest.approx(cell.published, rel=TOLERANCE)


@pytest.mark.parametrize("cell", cells(range(3, 6), reno=True), ids=str)
def test_reno(cell):
    assert_as_published(cell, RENO)


@pytest.mark.oracle
@pytest.mark.parametrize("cell", cells(range(6, 9), reno=True), ids=str)
def test_reno_at_rare_losses(cell):
    assert_as_published(cell, RENO)


@pytest.mark.parametrize("cell", cells(range(3, 5), reno=False), ids=str)
def test_cubic_in_fractions(cell):
    assert_as_published(cell, FRACTIONS)


@pytest.mark.oracle
@pytest.mark.parametrize("cell", cells(range(5, 7), reno=False), ids=str)
def test_cubic_in_fractions_at_rare_losses(cell):
    assert_as_published(cell, FRACTIONS)


def assert_as_reckoned_or_published(cell: Cell) -> None:
    """Between the stationary windows that are reckoned for starts from the table's window and from three times it."""
    window = response.measure(cell, WHOLE_SEGMENTS).window
    if cell.exponent <= 4:
        reckoned = sorted(stationary(cell, start) for start in (1.08, 3.0))
        assert reckoned[0] * 0.96 <= window <= reckoned[1] * 1.04
    if not cell.mixed:
        rel = TOLERANCE_OF_SHORT_EPOCHS if cell.exponent == 3 else TOLERANCE
        assert window == pytest.approx(cell.published, rel=rel)


def stationary(cell: Cell, start: float) -> float:
    """The average window that whole segments settle at, for a first loss at `start` times the table's window."""
    assert cell.c is not None
    return integer_windows.average_window(1 / cell.period, cell.rtt_s, cell.c, start * cell.published)


@pytest.mark.parametrize("cell", cells(range(3, 6), reno=False), ids=str)
def test_cubic_in_complete_segments(cell):
    assert_as_reckoned_or_published(cell)


@pytest.mark.oracle
@pytest.mark.parametrize("cell", cells(range(6, 8), reno=False), ids=str)
def test_cubic_in_complete_segments_at_rare_losses(cell):
    assert_as_reckoned_or_published(cell)


@pytest.mark.oracle
@pytest.mark.parametrize("rtt_s", response.TABLES)
def test_cubic_at_one_loss_in_a_hundred_million(rtt_s):
    assert_as_reckoned_or_published(Cell(8, rtt_s, 0.4))


def test_complete_segments_stay_where_they_arrived_from():
    """From an unbounded slow start the window is still far above the table after 300 losses, and it is reckoned so."""
    cell = Cell(4, 0.1, 0.4)
    more = ', slow_start = "standard", fast_convergence = false'
    from_above = response.Method("", more, bound=30.0, skipped=300, epochs=20)
    assert response.measure(cell, from_above).window > 1.1 * cell.published
    assert stationary(cell, 3.0) > 1.1 * cell.published


def test_the_tables_are_the_stationary_windows_of_the_reckoning():
    """Started at the table's maximum, whole segments stay within 1 % of the table where the cubic region rules."""
    for c in (0.4, 4.0):
        cell = Cell(4, 0.1, c)
        maximum = cell.published * 4 / (3 + integer_windows.BETA)
        window = integer_windows.average_window(1e-4, 0.1, c, maximum)
        assert math.isclose(window, cell.published, rel_tol=0.01)
