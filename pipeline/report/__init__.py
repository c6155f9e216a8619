"""What a reader sees: tables in LaTeX and Markdown, published results beside measured ones."""
