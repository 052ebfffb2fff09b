"""The notebook of the guides runs, and prints what it has printed before."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import claims  # noqa: E402 (it is no package)
import make_notebook  # noqa: E402


def texts(notebook) -> list[list[str]]:
    """Return the output of each cell, without figures: their bytes depend on fonts."""
    return [
        [
            "".join(
                output.get("text", output.get("data", {}).get("text/html", output.get("data", {}).get("text/plain")))
            )
            for output in cell["outputs"]
            if "image/png" not in output.get("data", {})
        ]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def figures(notebook) -> list[bytes]:
    """The figures of all cells."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return [base64.b64decode("".join(png)) for output in outputs if (png := output.get("data", {}).get("image/png"))]


def test_the_notebook_runs_and_prints_the_same():
    pytest.importorskip("nbclient")
    kept = make_notebook.read()
    again = make_notebook.run(kept)
    assert texts(again) == texts(kept), "python docs/make_notebook.py --run"
    assert [png[:8] for png in figures(again)] == [b"\x89PNG\r\n\x1a\n"] * len(figures(kept))
    assert len(figures(kept)) == 2


def test_the_page_has_all_cells_and_their_outputs():
    notebook = make_notebook.read()
    page, found = make_notebook.made(notebook)
    for cell in notebook["cells"]:
        assert "".join(cell["source"]).strip() in page
    for printed in texts(notebook):
        assert all(text.strip() in page for text in printed)
    assert list(found.values()) == figures(notebook)
    assert all(f"]({name})" in page for name in found)


def test_what_the_page_states_is_true_of_what_was_printed():
    page, _ = make_notebook.made(make_notebook.read())
    assert claims.untrue(page) == []
    assert list(claims.claims(page))


def test_a_cell_that_fails_is_not_a_page():
    nbclient = pytest.importorskip("nbclient")
    broken = make_notebook.read()
    broken["cells"] = [{**broken["cells"][1], "source": "import ackclock\nackclock.nothing"}]
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="module 'ackclock' has no attribute 'nothing'"):
        make_notebook.run(broken)
