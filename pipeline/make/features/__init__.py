"""Sets of items of images: engines, extraction, stores, features of other code bases, a user's own
folder.
"""
