"""The vocabulary check reports each kind of dialect, and nothing in plain text."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("vocabulary", ROOT / "tools" / "vocabulary.py")
assert SPEC is not None and SPEC.loader is not None
vocabulary = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = vocabulary  # its dataclasses are resolved by the module's name
SPEC.loader.exec_module(vocabulary)

NO_EXCEPTIONS = vocabulary.Exceptions(frozenset(), (), ())


def rules(check, path: str, text: str, exceptions=NO_EXCEPTIONS) -> list[str]:
    return [finding.rule for finding in check(path, text, exceptions)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def tell_rate(): ...", ["name"]),
        ("class HeardAck: ...", ["name"]),
        ("LEAST_RTT_S = 1", ["name"]),
        ("class Flow:\n    most_flows: int", ["name"]),
        ('"""What a flow is."""', ["opening"]),
        ('def f():\n    """Whether it is."""', ["opening"]),
        ("#: Of all flows.\nX = 1", ["opening"]),
        ('"""Rates of flows."""\n#: A rate.\n#: Of a flow.\nMAX_RATE_BPS = 1\ndef process_ack(): ...', []),
    ],
)
def test_python_is_checked(text, expected):
    assert rules(vocabulary.of_python, "a.py", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pub fn hear(&mut self) {", ["name"]),
        ("struct Beside {", ["name"]),
        ("    pub told: u32,", ["name"]),
        ("const MOST_FLOWS: usize = 1;", ["name"]),
        ("/// Whether it is.\nfn is_open() {}", ["opening"]),
        ("//! Of a flow.", ["opening"]),
        ("/// The rate.\n/// Of a flow.\nfn rate() {}", []),
    ],
)
def test_rust_is_checked(text, expected):
    assert rules(vocabulary.of_rust, "a.rs", text) == expected


def test_prose_is_checked_outside_code_blocks():
    assert rules(vocabulary.of_prose, "a.md", "A silence of 2 s.") == ["prose"]
    assert rules(vocabulary.of_prose, "a.md", "```\nA silence of 2 s.\n```\nA stall of 2 s.") == []


def test_exceptions_are_not_reported():
    names = vocabulary.Exceptions(frozenset({"tell_rate"}), ("B4.silence",), ())
    assert rules(vocabulary.of_python, "a.py", "def tell_rate(): ...", names) == []
    assert rules(vocabulary.of_prose, "a.md", "See B4.silence.", names) == []
