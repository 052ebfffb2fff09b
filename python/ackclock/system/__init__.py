"""The operating system's side of the program: signals, files and temporary folders."""
