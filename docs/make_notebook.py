"""Makes the site's page of the notebook, `docs/guides/first.md`, with its figures; and runs the notebook.

    python docs/make_notebook.py          # the page, from what the notebook printed when it was run last
    python docs/make_notebook.py --run    # run it first, and keep what it prints (needs the extra `dev`)

A page is made here since the site's generator reads Markdown only. It is not kept in the repository, the notebook is.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from claims import write

GUIDES = Path(__file__).resolve().parent / "guides"
NOTEBOOK = GUIDES / "first.ipynb"
MADE = "<!-- Made by docs/make_notebook.py from first.ipynb: edit that. -->\n\n"
DOWNLOAD = "This page is a notebook: [download it](first.ipynb), and run it in Jupyter.\n"

#: A notebook that takes longer than this does not answer any more, in seconds.
LONGEST_S = 300


def main() -> None:
    """The page; with `--run` the notebook's outputs before."""
    if "--run" in sys.argv[1:]:
        NOTEBOOK.write_text(written(run(read())), encoding="utf-8")
    page, figures = made(read())
    write(GUIDES / "first.md", page)
    for name, content in figures.items():
        (GUIDES / name).write_bytes(content)


def read() -> dict[str, Any]:
    """The notebook as JSON."""
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return found


def written(notebook: Mapping[str, Any]) -> str:
    """The notebook as text: the same notebook is the same text."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def run(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """The notebook with fresh outputs, run in a folder that is thrown away. A cell that fails raises."""
    nbformat: Any = import_module("nbformat")
    nbclient: Any = import_module("nbclient")
    fresh = nbformat.reads(json.dumps(notebook), as_version=4)
    with tempfile.TemporaryDirectory() as scratch:
        resources = {"metadata": {"path": scratch}}
        # What a cell prints is one output, however slowly it was printed.
        client = nbclient.NotebookClient(fresh, timeout=LONGEST_S, resources=resources, coalesce_streams=True)
        client.execute()
    found: dict[str, Any] = json.loads(nbformat.writes(fresh))
    for cell in found["cells"]:
        cell["metadata"] = {}
        for output in cell.get("outputs", ()):
            output["data"] = _kept(output.get("data", {})) if "data" in output else {}
            if not output["data"]:
                del output["data"]
    found["metadata"] = notebook["metadata"]
    return found


def _kept(data: Mapping[str, Any]) -> dict[str, Any]:
    """One form of an output: a figure, a table of ours, or text; folders and addresses in memory differ by run."""
    if "image/png" in data:
        return {"image/png": data["image/png"]}
    html = "".join(data.get("text/html", ""))
    if html and "<style" not in html:
        return {"text/html": data["text/html"]}
    return {"text/plain": data["text/plain"]}


def made(notebook: Mapping[str, Any]) -> tuple[str, dict[str, bytes]]:
    """The page, and its figures by name."""
    figures: dict[str, bytes] = {}
    first, *others = notebook["cells"]
    parts = ["".join(first["source"]), DOWNLOAD.rstrip()]
    for cell in others:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts += [f"```python\n{source}\n```", *_outputs(cell["outputs"], figures)]
    return MADE + "\n\n".join(parts) + "\n", figures


def _outputs(outputs: Sequence[Mapping[str, Any]], figures: dict[str, bytes]) -> Iterator[str]:
    for output in outputs:
        data = output.get("data", {})
        if "image/png" in data:
            name = f"first-{len(figures) + 1}.png"
            figures[name] = base64.b64decode("".join(data["image/png"]))
            yield f"![What the cell above draws]({name})"
        elif "text/html" in data:
            yield "".join(data["text/html"])
        else:
            text = "".join(data.get("text/plain", output.get("text", "")))
            yield f"```text\n{text.rstrip()}\n```"


if __name__ == "__main__":
    main()
