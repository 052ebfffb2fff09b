"""Search for the setting that meets requirements.

`criteria` are the requirements and objectives, `candidates` the settings, `spec` the whole question. `search` answers
it: `bisection` selects the setting to evaluate next, `evaluator` runs it, `hypothesis_test` judges it, and `pareto`
compares settings by several objectives. `result` is the answer, `folder` keeps it.
"""
