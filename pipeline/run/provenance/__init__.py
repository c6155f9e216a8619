"""Provenance: the record of what made a result, and the comparison of that record with the
files.
"""
