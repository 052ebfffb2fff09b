"""Figures as PGF pictures, which LaTeX typesets in the document's own fonts.

Its preamble has `usepackage{pgf}`, and `input{figure.pgf}` stands where the figure shall be. matplotlib asks a TeX
installation how wide texts are. Here its own fonts answer, so that none is needed: the document's are a little wider or
narrower, as with any other size of its fonts.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure

from ackclock.figures.table_export import LATEX

#: First lines of a PGF picture: its requirements of the document.
HEADER = r"""%% A figure as a PGF picture. In the preamble:
%%   \usepackage{pgf}
%% and where it is to appear:
%%   \input{FILE.pgf}
"""


#: Powers of ten beside logarithmic axes, the only formulas there are; whatever else a text holds is text.
_POWER = re.compile(r"\$\\mathdefault\{[-−\d.{}^ ]*(?:\\times)?[-−\d.{}^ ]*\}\$")

#: Characters to escape; of `%` and `^` matplotlib takes care.
_LETTERS = {letter: text for letter, text in LATEX.items() if chr(letter) not in "%^"}


def text(written: str) -> str:
    """Escape a text of a figure or a table for LaTeX."""
    return written if _POWER.fullmatch(written) else written.replace(r"\$", "$").translate(_LETTERS)


class _Renderer(RendererPgf):
    """Renderer of matplotlib that measures texts without TeX."""

    def __init__(self, figure: Figure, file: StringIO) -> None:
        super().__init__(figure, file)  # type: ignore[no-untyped-call]
        self._measure: Any = RendererAgg(1, 1, 72)  # type: ignore[no-untyped-call]

    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> tuple[float, float, float]:
        """In units of the picture's resolution."""
        wide, high, below = self._measure.get_text_width_height_descent(s, prop, ismath)
        factor = self.dpi / 72
        return wide * factor, high * factor, below * factor

    def draw_text(self, gc: Any, x: float, y: float, s: str, *more: Any, **named: Any) -> None:
        """A text that is no formula is written as such."""
        super().draw_text(gc, x, y, text(s), *more, **named)  # type: ignore[no-untyped-call]


def picture(figure: Figure) -> bytes:
    """Return the picture as a file for LaTeX. It contains no bitmap."""
    file = StringIO()
    wide, high = figure.get_size_inches()
    file.write(HEADER)
    file.write("\\begingroup%\n\\makeatletter%\n\\providecommand{\\mathdefault}[1]{#1}%\n\\begin{pgfpicture}%\n")
    file.write(f"\\pgfpathrectangle{{\\pgfpointorigin}}{{\\pgfqpoint{{{wide:f}in}}{{{high:f}in}}}}%\n")
    file.write("\\pgfusepath{use as bounding box, clip}%\n")
    figure.draw(_Renderer(figure, file))
    file.write("\\end{pgfpicture}%\n\\makeatother%\n\\endgroup%\n")
    return file.getvalue().encode()
