"""Figures for a printed column: style, fonts and files, and the figure of compared systems."""
