"""What people write: quantities with units, tables of known keys, files as text; and what is said of a mistake."""
