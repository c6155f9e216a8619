"""The command line: one file per command, each a DVC stage. Reads files, calls `pipeline`, writes files."""
