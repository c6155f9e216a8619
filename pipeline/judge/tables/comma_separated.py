"""Tables as comma-separated values: a line for each row, numbers without marks."""

import csv
import io

from pipeline.foundation.parts.wrapping import cell as harmless
from pipeline.judge.tables.table import MISSING, Cell, Table


def to_csv(table: Table) -> str:
    """Write a table: its panels' keys and groups' titles, then the columns, with the headings above
    them.
    """
    csv_file = io.StringIO()
    writer = csv.writer(csv_file, lineterminator="\n")
    headings_before = None
    for panel in table.panels:
        headings = []
        for column in panel.columns:
            heading = " ".join((*column.above, column.heading))
            headings.append(harmless(heading))
        if headings != headings_before:
            writer.writerow(["test set", "rows", *headings])
        headings_before = headings
        title = ""
        for group in panel.groups:
            title = group.title or title
            for row in group.rows:
                cells = map(_text, row.cells)
                writer.writerow([harmless(panel.key), harmless(title), *cells])
    return csv_file.getvalue()


def _text(cell: Cell) -> str:
    if cell.content == MISSING:
        return ""
    if isinstance(cell.content, str):
        return str(harmless(cell.content))
    return str(cell.content)
