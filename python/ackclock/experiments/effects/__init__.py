"""Analysis of variance: which swept key matters most. `anova` has the statistics, `effects` applies them to a sweep."""
