"""Input that people write: quantities with units, tables of known keys, files as text; and the messages on mistakes."""
