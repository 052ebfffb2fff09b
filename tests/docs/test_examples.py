"""Sentences of the guides that state a result are checked when their examples are run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import make_examples  # noqa: E402 (it is no package)

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

Two numbers, quickly. <!-- so: numbers(r"number (\\d)") == [1, 2] and numbers(r"of ([\\d,]+)")[0] == 1000
and max(cpu_s) < 5 -->
"""


@pytest.mark.parametrize(("compared", "untrue"), [(">", []), ("<", ["halves < 2"])])
def test_what_is_not_true_of_fresh_output_is_named(tmp_path, compared, untrue):
    page = make_examples.Page(tmp_path)
    text = PAGE.replace("{said}", "more than two").replace("{compared}", compared)
    fresh = page.remade(text)
    assert page.untrue == untrue
    assert fresh == text.replace("halves: 2", "halves: 3").replace("number 7", "number 2")


def test_a_page_is_rewritten_and_what_is_untrue_is_said_with_its_name(tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text(PAGE.replace("{compared}", "<"), encoding="utf-8")
    monkeypatch.setattr(make_examples, "ROOT", tmp_path)
    made = make_examples.remade(["page.md"], lambda: make_examples.Page(tmp_path), check=False)
    assert made == (["page.md"], ["no longer true in page.md: halves < 2"])
    assert "halves: 3" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_the_list_has_each_sentence_with_its_expression():
    found = list(make_examples.claims(PAGE))
    assert [sentence for sentence, _ in found] == [
        "There are three halves.",
        "They are {said}.",
        "Two numbers, quickly.",
    ]
    assert found[1][1] == "halves {compared} 2"


@pytest.mark.parametrize("name", [*make_examples.PAGES, make_examples.WALK])
def test_the_expressions_of_the_guides_are_python(name):
    for _, expression in make_examples.claims((ROOT / name).read_text(encoding="utf-8")):
        compile(f"({expression})", name, "eval")
