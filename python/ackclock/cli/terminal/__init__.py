"""Tables on standard output, progress on standard error."""
