"""Inequalities of claims: comparisons of measured intervals, each of which holds, fails or is undetermined.

    'cubic-flows' > 'reno-flows'                      # two rows, case by case where they have several
    'losses'['1 BDP'] > 1                             # one case
    'fewer'['AccuCubic*'] < 1 and 'delay' < 1         # the cases that match
    'goodput'['5 ms'] < 'goodput'['100 ms'] < 9.6e6   # an order
    'B5.7-5.9: flows' < 'B5.4-5.6: flows'['1 BDP']    # rows of two entries
    any('empty' > 0)                                  # in one case or more; without `any`, in every case

A value is the 95 % interval of a row's mean, or a number. `a < b` holds if all of a's interval is below b's, fails if
none of it is, and is undetermined if they overlap or a value is missing. `and`, `or` and `not` follow Kleene's logic.
Numbers may be combined by + - * / and `abs`, with interval arithmetic. The text is parsed by Python's grammar, of
which only these parts are accepted; nothing is executed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from typing import NamedTuple, TypeAlias

from ackclock.errors import InputError
from ackclock.input.fields import shown


class Interval(NamedTuple):
    """The 95 % interval of a mean; a single value is an interval without width."""

    low: float
    high: float


#: A row's values by case; None where there is no value.
Cases: TypeAlias = Mapping[str, Interval | None]

#: Whether a comparison holds, by case; None where that is undetermined.
Truths: TypeAlias = Mapping[str, bool | None]

#: The case of a number, which goes with every other.
EVERY = ""

_ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(slots=True)
class Outcome:
    """Whether an inequality holds, and the cases in which a comparison fails or is undetermined."""

    truth: bool | None
    failing: list[str] = field(default_factory=list)
    undetermined: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Inequality:
    """A parsed inequality. `Inequality.parse` raises `InputError` for what is not one."""

    text: str
    tree: ast.expr

    @staticmethod
    def parse(text: str) -> Inequality:
        """Return the inequality of a text. Raises `InputError`."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise InputError(f"{shown(text)}: {error.msg}; expected an inequality, such as 'row'['case'] < 1") from None
        _check_truth(tree)
        return Inequality(text, tree)

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The rows that it names, each with the pattern of its cases."""
        found = [_reference(node) for node in ast.walk(self.tree) if isinstance(node, ast.Subscript)]
        inside = {
            id(part) for node in ast.walk(self.tree) if isinstance(node, ast.Subscript) for part in ast.walk(node)
        }
        found += [
            (node.value, "*")
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside
        ]
        return list(dict.fromkeys(found))

    def evaluate(self, rows: Mapping[str, Cases]) -> Outcome:
        """Return whether it holds for these rows. Raises `KeyError` if a row or a case that it names is not there."""
        outcome = Outcome(None)
        outcome.truth = _all(_truths(self.tree, rows, outcome).values())
        return outcome


def _reference(node: ast.Subscript) -> tuple[str, str]:
    """The row and the pattern of `'row'['case']`."""
    parts = (node.value, node.slice)
    row, case = (part.value if isinstance(part, ast.Constant) else None for part in parts)
    if not isinstance(row, str) or not isinstance(case, str):
        raise InputError(f"{shown(ast.unparse(node))}: expected 'row'['case']")
    return row, case


def _check_truth(node: ast.expr) -> None:
    """Reject what is neither a comparison nor made of comparisons. Raises `InputError`."""
    match node:
        case ast.BoolOp():
            parts = node.values
        case ast.UnaryOp(op=ast.Not()):
            parts = [node.operand]
        case ast.Call(func=ast.Name(id="any" | "all"), args=[_], keywords=[]):
            parts = node.args
        case ast.Compare() if all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops):
            for side in (node.left, *node.comparators):
                _check_value(side)
            return
        case _:
            raise InputError(f"{shown(ast.unparse(node))}: expected a comparison with <, <=, > or >=")
    for part in parts:
        _check_truth(part)


def _check_value(node: ast.expr) -> None:
    match node:
        case ast.Constant(value=str()):
            return
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.Subscript():
            _reference(node)
        case ast.UnaryOp(op=ast.USub()):
            _check_value(node.operand)
        case ast.Call(func=ast.Name(id="abs"), args=[part], keywords=[]):
            _check_value(part)
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            _check_value(node.left)
            _check_value(node.right)
        case _:
            raise InputError(f"{shown(ast.unparse(node))}: expected a row, 'row'['case'] or a number")


def _truths(node: ast.expr, rows: Mapping[str, Cases], outcome: Outcome) -> Truths:
    match node:
        case ast.BoolOp():
            parts = [_all(_truths(part, rows, outcome).values()) for part in node.values]
            return {EVERY: _all(parts) if isinstance(node.op, ast.And) else _any(parts)}
        case ast.UnaryOp():
            return {case: _not(truth) for case, truth in _truths(node.operand, rows, outcome).items()}
        case ast.Call(func=ast.Name(id=name)):
            found = _truths(node.args[0], rows, outcome).values()
            return {EVERY: _all(found) if name == "all" else _any(found)}
        case ast.Compare():
            return _compared(node, rows, outcome)
    raise AssertionError(node)


def _compared(node: ast.Compare, rows: Mapping[str, Cases], outcome: Outcome) -> Truths:
    """Compare neighbours of a chain, case by case."""
    sides = [_values(side, rows) for side in (node.left, *node.comparators)]
    found: dict[str, list[bool | None]] = {}
    for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
        for case, (one, other) in _paired(node, left, right).items():
            found.setdefault(case, []).append(_less(one, other, op))
    truths = {case: _all(parts) for case, parts in found.items()}
    outcome.failing += [case for case, truth in truths.items() if truth is False and case]
    outcome.undetermined += [case for case, truth in truths.items() if truth is None and case]
    return truths


def _less(one: Interval | None, other: Interval | None, op: ast.cmpop) -> bool | None:
    if one is None or other is None:
        return None
    if isinstance(op, ast.Gt | ast.GtE):
        one, other = other, one
    strictly = isinstance(op, ast.Lt | ast.Gt)
    if one.high < other.low or (not strictly and one.high == other.low):
        return True
    apart = one.low > other.high or (strictly and one.low == other.high)
    return False if apart else None


def _values(node: ast.expr, rows: Mapping[str, Cases]) -> Cases:
    match node:
        case ast.Constant(value=str()):
            return rows[str(node.value)]
        case ast.Constant():
            number = float(node.value)  # type: ignore[arg-type]
            return {EVERY: Interval(number, number)}
        case ast.Subscript():
            row, pattern = _reference(node)
            return _matching(rows[row], pattern)
        case ast.UnaryOp():
            zero = ast.Constant(0)
            return _values(ast.BinOp(zero, ast.Sub(), node.operand), rows)
        case ast.Call():
            return {case: _absolute(value) for case, value in _values(node.args[0], rows).items()}
        case ast.BinOp():
            pairs = _paired(node, _values(node.left, rows), _values(node.right, rows))
            return {case: _combined(type(node.op), *pair) for case, pair in pairs.items()}
    raise AssertionError(node)


def _matching(cases: Cases, pattern: str) -> Cases:
    """The cases of a name or a pattern. A single one goes with every other. Raises `KeyError` if there is none."""
    if pattern in cases:
        return {EVERY: cases[pattern]}
    found = {case: value for case, value in cases.items() if fnmatchcase(case, pattern)}
    if not found:
        raise KeyError(pattern)
    return found


def _paired(node: ast.expr, one: Cases, other: Cases) -> Mapping[str, tuple[Interval | None, Interval | None]]:
    """The values of two sides by case. Raises `InputError` if both have several cases, and not the same ones."""
    if len(one) == 1:
        (value,) = one.values()
        return {case: (value, each) for case, each in other.items()}
    if len(other) == 1:
        (value,) = other.values()
        return {case: (each, value) for case, each in one.items()}
    if one.keys() != other.keys():
        raise InputError(f"{shown(ast.unparse(node))}: found rows of different cases; expected the same ones, or one")
    return {case: (value, other[case]) for case, value in one.items()}


def _absolute(value: Interval | None) -> Interval | None:
    if value is None:
        return None
    ends = sorted(map(abs, value))
    return Interval(0.0 if value.low <= 0 <= value.high else ends[0], ends[1])


def _combined(op: type[ast.operator], one: Interval | None, other: Interval | None) -> Interval | None:
    if one is None or other is None or (op is ast.Div and other.low <= 0 <= other.high):
        return None
    found = [_ARITHMETIC[op](a, b) for a, b in product(one, other)]
    return Interval(min(found), max(found)) if all(map(math.isfinite, found)) else None


def _all(truths: Iterable[bool | None]) -> bool | None:
    found = list(truths)
    return False if False in found else None if None in found else True


def _any(truths: Iterable[bool | None]) -> bool | None:
    found = list(truths)
    return True if True in found else None if None in found else False


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth
