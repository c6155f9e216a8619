"""What all rooms use: errors, delayed imports, tables of parts by name, parts of other packages,
lines of text.
"""
