"""A user's own folder: the files that it starts with, and settings for the user's own
photographs.
"""
