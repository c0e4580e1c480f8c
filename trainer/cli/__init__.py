"""The command line of the method: one file for each group of commands."""
