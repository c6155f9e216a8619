"""What all rooms rest on: errors, delayed imports, tables of parts by name, parts of other packages, lines of text."""
