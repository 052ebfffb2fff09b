"""Links that deliver at the opportunities of a trace, in a guest: a queue discipline of our own, in the shaper's place.

The module (`kernel/modules/links/opportunities.c`) is compiled for the guest's kernel when a plan first needs it, and
has a discipline for each link. What runs inside tells it the traces, and when the run begins
(`crates/ackclock-linux/src/opportunities.rs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ackclock.engines.linux.kernel import bundled_modules, user_module
from ackclock.engines.linux.stack import insmod
from ackclock.plan import Plan

SOURCE = bundled_modules.FOLDER / "links" / "opportunities.c"


def links(plan: Plan) -> list[int]:
    """The links that have them, by their numbers."""
    return [number for number, link in enumerate(plan.links) if link.trace and link.trace.has_opportunities]


def loaded(plan: Plan, kernel: Path) -> Iterator[str]:
    """The command that loads the module into a guest, if a link needs it. Raises `InputError`."""
    if found := links(plan):
        yield f"{insmod(compiled(kernel), {})} link={','.join(map(str, found))}"


def compiled(kernel: Path) -> Path:
    """The module for a guest's kernel. Raises `InputError`."""
    user_module.check_tools(user_module.TOOLS, "delivery opportunities in a guest")
    return user_module.compiled(user_module.read(SOURCE), kernel)


def qdisc(number: int) -> str:
    """A link's discipline."""
    return f"opportunity{number}"
