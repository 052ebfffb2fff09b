"""Puts what `make scoreboard` has printed into the page of the scoreboard.

    python docs/make_scoreboard.py results/scoreboard

A text block after `<!-- printed: NAME -->` becomes what is in `NAME.txt`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "concepts" / "scoreboard.md"
BLOCK = re.compile(r"(<!-- printed: ([\w-]+) -->\n\n```text\n).*?(```)", re.DOTALL)


def main() -> None:
    """Rewrites the page."""
    if len(sys.argv) != 2:
        sys.exit("expected the folder that `make scoreboard` made")
    folder = Path(sys.argv[1])
    printed = (folder / f"{name}.txt" for _, name, _ in BLOCK.findall(PAGE.read_text("utf-8")))
    texts = {path.stem: path.read_text("utf-8").rstrip() + "\n" for path in printed}
    page = BLOCK.sub(lambda block: block[1] + texts[block[2]] + block[3], PAGE.read_text("utf-8"))
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
