"""Comparisons: one scenario with several engines, their metrics side by side with differences and intervals.

`difference` has the statistics, `compare` runs the engines, `folder` writes the result.
"""
