"""Which of the papers' claims, such as "AdPool beats GPO", hold on one's own data.

claims.py    a claim, its systems, its verdict, and the table of all
command.py   `pipeline lab study`: its options
stage.py     and what it does
"""

from pipeline.foundation.parts.extension import Command, Extension

_COMMAND = Command(
    purpose="Test on your data which of the papers' claims hold.",
    place="pipeline.extensions.claims.command:study_command",
    extra="training",
)
EXTENSION = Extension(commands={"lab study": _COMMAND})
