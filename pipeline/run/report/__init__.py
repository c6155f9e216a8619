"""Output for readers: tables in LaTeX and Markdown, figures and pages, published results beside
measured ones.
"""
