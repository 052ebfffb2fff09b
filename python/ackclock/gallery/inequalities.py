"""Inequalities of claims, which hold, fail or are undetermined, and the states that their outcomes give.

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

**Engines that count** are packet, linux, ns2, ns3 and the machine itself; a model counts where the claim is about it.
A comparison of a simulation with a model is the simulation's.

**States**, from the cells of the joint reading (of every reading where there is no testbed):

- *confirmed*: all that are decided hold, those of other readings too, in two engines or more and with host noise; a
  claim about a model holds in the model
- *confirmed if …*: the same, but other readings, or hosts with or without noise, are on the other side
- *fails*: all that are decided fail, in two engines or more or with an ablation that turns the claim
- *inconsistent in itself*, *not testable*: as the paper's file says, with the reason
- *undetermined*: anything else: one engine alone, no host noise, engines that disagree, intervals that decide nothing

Used by `claims`, by the pages, and by the search for the value at which a claim turns.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
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

#: Truth of a comparison by case: None where that is undetermined.
Truths: TypeAlias = Mapping[str, bool | None]

#: The case of a number, which goes with every other.
EVERY = ""

_ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}

#: The states of a claim.
CONFIRMED, CONFIRMED_IF, FAILS = "confirmed", "confirmed if", "fails"
INCONSISTENT, UNDETERMINED, UNTESTABLE = "inconsistent in itself", "undetermined", "not testable"
STATES = (CONFIRMED, CONFIRMED_IF, FAILS, INCONSISTENT, UNDETERMINED, UNTESTABLE)

#: Engines whose packets a claim about networks may rest on.
SIMULATORS = ("packet", "linux", "ns2", "ns3", "host")

#: Subject of a claim, other than the network.
MODEL = "model"


@dataclass(slots=True)
class Outcome:
    """The truth of an inequality, and the cases in which a comparison fails or is undetermined."""

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


@dataclass(frozen=True, slots=True)
class Cell:
    """One evaluation: of an engine (or a comparison of several), a reading, with host noise or without, at a scale.

    `scale` is empty for the entry's own. A `single` run has no interval.
    """

    label: str
    reading: str
    noise: bool
    outcome: Outcome
    scale: str
    single: bool

    @property
    def truth(self) -> bool | None:
        """The truth of the claim here."""
        return self.outcome.truth


@dataclass(frozen=True, slots=True)
class State:
    """A claim's state: one of `STATES`, its condition or reason, and the ablations that turn the claim."""

    name: str
    why: str = ""
    mechanisms: Sequence[str] = ()

    def __str__(self) -> str:
        if self.name == CONFIRMED_IF:
            return f"{self.name} {self.why}"
        return f"{self.name}: {self.why}" if self.why else self.name


def state_of(
    cells: Sequence[Cell], joint: str | None = None, *, is_model: bool = False, mechanisms: Sequence[str] = ()
) -> State:
    """Return the state that cells give; `joint` is the testbed's reading, None where every reading counts."""
    counted = [cell for cell in cells if engines_of(cell, is_model=is_model) and cell.truth is not None]
    own = [cell for cell in counted if joint is None or cell.reading in ("", joint)]
    if not own:
        is_there = any(engines_of(cell, is_model=is_model) for cell in cells)
        return State(UNDETERMINED, "no interval decides" if is_there else "no engine that counts has measured it")
    others = [cell for cell in counted if cell not in own]
    rule = _Rule(joint, is_model, mechanisms)
    if all(cell.truth for cell in own):
        return rule.holding(own, others)
    return rule.split(own) if any(cell.truth for cell in own) else rule.failing(own, others)


@dataclass(frozen=True, slots=True)
class _Rule:
    """The rule for decided cells that count."""

    joint: str | None
    is_model: bool
    mechanisms: Sequence[str]

    def holding(self, own: Sequence[Cell], others: Sequence[Cell]) -> State:
        """Return the state where all cells of the joint reading hold."""
        against = [cell for cell in others if not cell.truth]
        support = own if against else [*own, *others]
        but = f"; it fails if read as {_readings(against)}" if against else ""
        if self._has_single_engine(support):
            return State(UNDETERMINED, f"one engine alone ({self._engines(support)}), in which it holds{but}")
        if not self.is_model and not any(cell.noise for cell in support):
            return State(UNDETERMINED, f"it holds, but no run with host noise decides{but}")
        return State(CONFIRMED_IF, f"read as “{self.joint}”") if against else State(CONFIRMED)

    def failing(self, own: Sequence[Cell], others: Sequence[Cell]) -> State:
        """Return the state where all cells of the joint reading fail."""
        holding = [cell for cell in others if cell.truth]
        only = f"it holds only if read as {_readings(holding)}" if holding else ""
        support = own if holding else [*own, *others]
        if self._has_single_engine(support) and not self.mechanisms:
            alone = f"one engine alone ({self._engines(support)}), in which it fails"
            return State(UNDETERMINED, "; ".join(filter(None, (alone, only))))
        return State(FAILS, only, self.mechanisms)

    def split(self, own: Sequence[Cell]) -> State:
        """Return the state where some hold and some fail: by noise, by reading, or by engine."""
        holding, failing = ([cell for cell in own if cell.truth is truth] for truth in (True, False))
        condition = _condition(holding, failing)
        if not condition:
            sides = f"it holds in {self._engines(holding)} and fails in {self._engines(failing)}"
            return State(UNDETERMINED, f"engines disagree: {sides}", self.mechanisms)
        if self._has_single_engine(holding):
            alone = f"one engine alone ({self._engines(holding)}), in which it holds if {condition}"
            return State(UNDETERMINED, alone, self.mechanisms)
        return State(CONFIRMED_IF, condition, self.mechanisms)

    def _has_single_engine(self, some: Sequence[Cell]) -> bool:
        """Return True if fewer than two engines are of one mind, and it is not the model that the claim is about."""
        names = {name for cell in some for name in engines_of(cell, is_model=self.is_model)}
        return len(names) < 2 and not (self.is_model and not names & set(SIMULATORS))

    def _engines(self, some: Sequence[Cell]) -> str:
        return ", ".join(dict.fromkeys(name for cell in some for name in engines_of(cell, is_model=self.is_model)))


def _condition(holding: Sequence[Cell], failing: Sequence[Cell]) -> str:
    """Return what the cells that hold have in common, and those that fail do not; empty if nothing."""
    scales = {cell.scale for cell in holding}
    if scales.isdisjoint(cell.scale for cell in failing):
        return "at " + " or ".join(f"“{scale}”" if scale else "the entry's scale" for scale in sorted(scales))
    noises = {cell.noise for cell in holding}
    if noises.isdisjoint(cell.noise for cell in failing):
        return f"hosts take {'time' if noises == {True} else 'no time'} for packets"
    readings = [{cell.reading for cell in some} for some in (holding, failing)]
    if readings[0].isdisjoint(readings[1]) and "" not in readings[0] | readings[1]:  # what is of each is of both
        return f"read as {_readings(holding)}"
    return ""


def _readings(some: Sequence[Cell]) -> str:
    return " or ".join(f"“{name}”" for name in dict.fromkeys(cell.reading for cell in some))


def engines_of(cell: Cell, *, is_model: bool) -> list[str]:
    """Return the engines of a cell that count: the simulators; without any, the models if the claim is about them."""
    names = cell.label.split(", ")
    found = [name for name in names if name in SIMULATORS]
    return found or (names if is_model else [])
