"""Tables and cells as text, LaTeX, Markdown, HTML and CSV, of results and of comparisons."""
