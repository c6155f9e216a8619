"""results/report.html: one page that a reader opens from disk. What it holds, and how it becomes HTML."""

from pipeline.report.page.contents import Contents
from pipeline.report.page.render import render

__all__ = ["Contents", "render"]
