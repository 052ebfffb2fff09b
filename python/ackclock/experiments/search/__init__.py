"""From a question to an answer with its evidence: which setting meets what is needed?

`needs` and `goals` are what is asked for, `candidates` where it is looked for, `deciding` the statistics of one
setting, `searching` which setting is looked at next, `proposing` where cheap engines would look first, `looking` runs
settings, `question` has all of it, `answer` is what comes out, `folder` keeps it.
"""
