"""`ackclock fit`: what a result's losses say of how models of many flows should lose theirs.

`events` takes the loss events out of a dataset, `estimate` finds the parameters with their intervals and writes them
as the tables `[fluid]` and `[meanfield]` of a scenario.
"""

from __future__ import annotations

from ackclock.experiments.fit.estimate import Fitted, fit

__all__ = ["Fitted", "fit"]
