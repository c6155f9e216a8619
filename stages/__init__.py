"""The command line: a file per command, and what commands share. Reads files, calls `pipeline`,
writes files.
"""
