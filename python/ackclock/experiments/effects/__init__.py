"""Which swept key matters most: `anova` (the statistics, of numbers only), `effects` (of a sweep), `words`."""
