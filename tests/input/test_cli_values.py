"""Values of options as the user types them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock.input import cli_values


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", [""]),
        ("reno", ["reno"]),
        ("reno, cubic", ["reno", "cubic"]),
        ("1bdp,,2bdp", ["1bdp", "", "2bdp"]),
        ('{ discipline = "pie", limit = "1bdp" },codel', ['{ discipline = "pie", limit = "1bdp" }', "codel"]),
        ("[1, [2, 3]], 4", ["[1, [2, 3]]", "4"]),
        ('"a, b",c', ['"a, b"', "c"]),
        ("'a, b',c", ["'a, b'", "c"]),
        (r'"a \", b",c', [r'"a \", b"', "c"]),
        ('{ name = "}", x = 1 },c', ['{ name = "}", x = 1 }', "c"]),
        ("Linux's, Reno's", ["Linux's", "Reno's"]),
        ('5" and 6", 7"', ['5" and 6"', '7"']),
        ("{ a, b", ["{ a, b"]),
        ("a }, b", ["a }", "b"]),
    ],
)
def test_a_comma_inside_braces_brackets_or_quotes_is_the_items_own(text, items):
    assert cli_values.items(text) == items


@given(st.text(alphabet="ab ,{}[]\"'\\"))
def test_nothing_is_lost(text):
    assert ",".join(cli_values.split(text)) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("0.5", 0.5),
        ("true", True),
        ("1Gbit", "1Gbit"),
        ('"7"', "7"),
        ('{ kind = "cubic", beta = 0.5 }', {"kind": "cubic", "beta": 0.5}),
        ("[1, 2]", [1, 2]),
        ("2024-01-01", "2024-01-01"),
        ("1\nb = 2", "1\nb = 2"),
    ],
)
def test_a_value_is_what_toml_reads_or_itself(text, value):
    assert cli_values.value(text) == value
