"""Sentences of the documentation that state a result are checked: when examples are run, or on what was recorded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import claims  # noqa: E402 (it is no package)
import make_examples  # noqa: E402
import make_matrix  # noqa: E402

PAGE = """# A page

```python
halves = 3
print(f"halves: {halves}")
```

```text
halves: 2
```

There are three halves. <!-- so: numbers(r"halves: (\\d+)") == [halves] == [3] -->
They are {said}.
<!-- so: halves {compared} 2 -->

```console
$ for number in 1 2; do echo \\
    "number $number of 1,000"; done
number 1 of 1,000
number 7 of 1,000
```

Two numbers of a thousand. <!-- so: numbers(r"number (\\d)") == [1, 2]
and numbers(r"of ([\\d,]+)")[0] == 1000 -->
"""


@pytest.mark.parametrize(("compared", "untrue"), [(">", []), ("<", ["halves < 2"])])
def test_what_is_not_true_of_fresh_output_is_named(tmp_path, compared, untrue):
    page = make_examples.Page(tmp_path)
    text = PAGE.replace("{said}", "more than two").replace("{compared}", compared)
    fresh = page.remade(text)
    assert page.untrue == untrue
    assert fresh == text.replace("halves: 2", "halves: 3").replace("number 7", "number 2")


def test_a_page_is_rewritten_and_an_untrue_claim_is_reported_by_name(tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text(PAGE.replace("{compared}", "<"), encoding="utf-8")
    monkeypatch.setattr(make_examples, "ROOT", tmp_path)
    made = make_examples.remade(["page.md"], lambda: make_examples.Page(tmp_path), check=False)
    assert made == (["page.md"], ["no longer true in page.md: halves < 2"])
    assert "halves: 3" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_the_list_has_each_sentence_with_its_expression():
    found = list(claims.claims(PAGE))
    assert [sentence for sentence, _ in found] == [
        "There are three halves.",
        "They are {said}.",
        "Two numbers of a thousand.",
    ]
    assert found[1][1] == "halves {compared} 2"


@pytest.mark.parametrize("name", [*make_examples.PAGES, make_examples.WALK])
def test_the_expressions_of_the_guides_are_python(name):
    for _, expression in claims.claims((ROOT / name).read_text(encoding="utf-8")):
        compile(f"({expression})", name, "eval")


RECORDED = """# A recorded page

Halves take less than a second, <!-- so: [number(row["time"]) for row in rows("## Halves")] == [0.5, 0.0005] -->
and thirds more. <!--
so: {thirds} -->

## Thirds, then

|  | time | share |
| --- | --- | --- |
| first | **2 s** ± 0.1 | 33 % |

## Halves

| what | time |
| --- | --- |
| one | 500 ms |
| 1,000 | 500 µs |
"""


@pytest.mark.parametrize(
    ("thirds", "is_true"),
    [
        ('number(rows("## Thirds")[0]["time"]) > 1', True),
        ('number(rows("## Thirds")[0]["time"]) > 2', False),
        ('numbers(r"\\*([\\d.]+) s") == [2] and said(r"^\\| (\\w+) +\\|") == ["first", "what", "one"]', True),
        ('len(rows()) == len(rows("Thirds", "Halves")) - 1', True),
        ('rows("## Halves", page="docs/recorded.md")[1]["what"] == "1,000"', True),
        ('csv("kept.csv")["share"].sum() == 3', True),
        ('csv("kept.csv")["share"].sum() == 4', False),
        ('value("time", "| first |") == 2 and values("ti", "0 ") == [0.5, 0.0005]', True),
        ('cells("share", "first") == ["33 %"]', True),
        ('cells("share", "first") == ["34 %"]', False),
    ],
)
def test_a_sentence_of_a_recorded_page_is_checked_on_its_tables(tmp_path, monkeypatch, thirds, is_true):
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    page = tmp_path / "docs" / "recorded.md"
    page.parent.mkdir()
    (tmp_path / "kept.csv").write_text("share\n1\n2\n", encoding="utf-8")
    page.write_text(RECORDED, encoding="utf-8")
    text = RECORDED.replace("{thirds}", thirds)
    assert claims.untrue(text) == ([] if is_true else [thirds])
    if is_true:
        claims.write(page, text)
    else:
        with pytest.raises(SystemExit, match="no longer true in docs/recorded.md"):
            claims.write(page, text)
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("words", ["no such words", "## Halves"])
def test_a_missing_table_is_an_error(words):
    with pytest.raises(ValueError, match="substring not found|no table below"):
        claims.rows(claims.CLAIM.sub("", RECORDED).split("| what")[0], words)


@pytest.mark.parametrize("words", [("share", "one"), ("time", "| firs |"), ("no such head", "first")])
def test_no_row_is_an_error_and_no_empty_list(words):
    """Check an untrue claim, since `all(… for … in values(…))` could otherwise not be untrue."""
    with pytest.raises(ValueError, match="no row with"):
        claims.cells(RECORDED, *words)


@pytest.mark.parametrize("name", claims.RECORDED)
def test_what_recorded_pages_state_is_true_of_their_tables(name):
    assert claims.untrue((ROOT / name).read_text(encoding="utf-8")) == []


def test_what_the_page_of_the_kernel_states_is_true_of_its_table():
    text, _ = make_matrix.made()
    assert claims.CLAIM.search(text)
    assert claims.untrue(text) == []


def test_ellipses_omit_lines():
    output = "a\nb\nc\nd\ne\nf"
    assert make_examples._elided("a\nb\n…\ne\nf", output) == "a\nb\n…\ne\nf"
    assert make_examples._elided("x\nb\n…\nd\n…", output) == "a\nb\n…\nd\n…"
    assert make_examples._elided("x", output) == output
