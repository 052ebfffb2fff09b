"""The command line: a file per command, with the options and messages that several of them share."""
