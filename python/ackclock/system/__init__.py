"""What the operating system does to the program: signals, and files that are none."""
