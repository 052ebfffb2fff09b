"""From a question to an answer with its evidence: which setting meets what is needed?

`constraints` and `objectives` are what is asked for, `candidates` the settings, `hypothesis_test` the statistics of one
setting, `bisection` selects the setting to evaluate next, `surrogate` lets cheap engines guess the first, `evaluator`
runs settings, `spec` has the whole question, `search` answers it, `result` is the answer, `folder` keeps it.
"""
