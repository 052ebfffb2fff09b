"""From text to a plan: the scenario as a whole, the rooms of its tables, the points of a sweep, and planning.

Called, it makes a scenario without a file: `ackclock.scenario(rate="1Gbit", rtt="40ms", flows=50)`.
"""

from ackclock.system.callable_package import make_callable

make_callable(__name__, "ackclock.scenario.builder", "scenario")
