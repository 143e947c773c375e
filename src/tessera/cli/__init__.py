"""The command line: parse arguments, ask for data, render it.

Data goes to stdout, talk and progress to stderr. Nothing is decided here. Commands are loaded when they are called, so
that `--help` answers at once.
"""
