"""results/report.html: one page that opens from disk, without network."""

from pipeline.run.report.page.render import Page, render
