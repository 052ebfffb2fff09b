"""What the commands print: tables and cards on standard output, progress on standard error."""
