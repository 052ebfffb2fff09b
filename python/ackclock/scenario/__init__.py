"""From text to a plan: the scenario as a whole, the rooms of its tables, the points of a sweep, and planning.

Called, it makes a scenario without a file: `ackclock.scenario(rate="1Gbit", rtt="40ms", flows=50)`. The name is that of
this package as well, so the package itself is what is called, whoever has imported it before.
"""

import sys
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    def __call__(self, **given: Any) -> Any:
        """See `ackclock.scenario.builder.scenario`."""
        from ackclock.scenario.builder import scenario

        return scenario(**given)


sys.modules[__name__].__class__ = _Package
