"""`python -m ackclock`: the command line, where the script `ackclock` is not on the path."""

from ackclock.cli import main

if __name__ == "__main__":
    main()
