"""Ensembles: the similarities of several systems as one."""
