"""A board of many systems on many tasks: paired tests within each task, and places over tasks.

command.py     `pipeline board`: its options
stage.py       and what it does
tasks.py       which files are which system's on which task
folders.py     the layouts of folders that hold them
measured.py    the systems of one task: values, tests, rank intervals, letters
over_tasks.py  places over tasks, and what holds when one is left out
tables.py      what is printed
page.py        the page, with its page.html, page.js and page.css

The tests are those of the core's statistics, `all_pairs.py` and `rank_intervals.py`.
"""

from pipeline.foundation.parts.extension import Command, Extension

_COMMAND = Command(
    section="Results",
    purpose="Rank many systems on many tasks, with intervals of their ranks.",
    place="pipeline.extensions.board.command:board_command",
)
EXTENSION = Extension(commands={"board": _COMMAND})
