"""The commands' options and help, a file for the file of `stages` that does the work."""
