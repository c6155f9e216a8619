"""Captions: from words to numbers, and text encoders that give one vector a token."""
