"""From text to a plan: the scenario as a whole, the rooms of its tables, the points of a sweep, and planning."""
