"""Figures for a printed column: style, fonts and files, and the figure of compared systems."""

import logging

# Which fonts matplotlib looks for and does not find concerns nobody: letters that no font has are
# named in a warning of our own (`drawing`).
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
