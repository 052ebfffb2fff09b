"""Pages that open offline: style, script, plotly.js and data are inside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ackclock.dataset import folders

#: Templates, and what they put into the page.
TEMPLATES = ("page.html.j2", "parts.html.j2", "report.html.j2", "sweep.html.j2", "doctor.html.j2")
ASSETS = (*TEMPLATES, "report.css", "report.js", "plotly-cartesian.min.js")


def render(template: str, **content: Any) -> str:
    """Render a page from one of the templates."""
    return str(_template(template).render(content))


def write(text: str, out: Path | str) -> Path:
    """Write a page atomically and return its path. Raises `InputError` if it cannot be written."""
    path = Path(out)
    folders.atomic_write(path, lambda new: new.write_text(text, encoding="utf-8", errors="replace"))
    return path


def _template(name: str) -> Any:
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    assets = Path(__file__).parent / "assets"
    text = {asset: (assets / asset).read_text(encoding="utf-8") for asset in ASSETS}
    environment = Environment(
        loader=DictLoader(text), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["asset"] = lambda asset: Markup(text[asset])  # our own files, not the user's
    environment.filters["script_json"] = lambda value: Markup(_script_json(value))
    return environment.get_template(name)


def _script_json(value: Any) -> str:
    """Return JSON that cannot end the script element that contains it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
