"""The page of an audit: numbers, and pairs of images side by side. One file; all text from data is escaped."""

from html import escape

from pipeline.files import images
from pipeline.files.gallery_file import GalleryFile
from pipeline.report import examples
from pipeline.studies.audit.collection import Collection
from pipeline.studies.audit.findings import Findings
from pipeline.studies.audit.shared import LOOK, Pair

SIDE = 240  # pixels
SHOWN = 100  # pairs of each kind, about 8 kB each
STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { border-top: 1px solid var(--line); font-size: 1.2rem; padding-top: 1rem; }
.pairs { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(18rem, 1fr)); }
.pairs { list-style: none; padding: 0; }
.pairs li { border: 1px solid var(--line); border-radius: .5rem; overflow: hidden; }
.two { display: grid; grid-template-columns: 1fr 1fr; }
img, .missing { aspect-ratio: 4 / 3; background: var(--line); display: block; object-fit: contain; width: 100%; }
.missing { box-sizing: border-box; display: grid; padding: 1rem; place-items: center; }
.pairs p { margin: 0; overflow-wrap: anywhere; padding: .5rem .75rem; }
table { border-collapse: collapse; }
td, th { padding: .25rem .75rem .25rem 0; text-align: start; }
"""


def page(findings: Findings) -> str:
    """Write the page."""
    names = findings.one.name if findings.alone else f"{findings.one.name} and {findings.other.name}"
    lines = "".join(f"<li>{escape(line)}</li>" for line in findings.lines())
    content = [f"<ul>{lines}</ul>",
               _pairs("Pairs to judge", findings.shared.doubtful, findings,
                      "No two of the other images look alike."),
               _pairs("One photograph", findings.shared.certain, findings, "None."), _texts(findings)]
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>Audit of {escape(names)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
            f"<h1>What {escape(names)} {'holds twice' if findings.alone else 'have in common'}</h1>\n"
            + "\n".join(content) + "\n</main>\n</body>\n</html>\n")


def _pairs(title: str, pairs: list[Pair], findings: Findings, none: str) -> str:
    if not pairs:
        return f"<h2>{escape(title)}</h2>\n<p>{escape(none)}</p>"
    more = f"<p>The first {SHOWN} of {len(pairs):,} pairs; the .json file has all.</p>\n" if len(pairs) > SHOWN else ""
    items = "\n".join(_item(pair, findings) for pair in pairs[:SHOWN])
    return f'<h2>{escape(title)}</h2>\n{more}<ol class="pairs">\n{items}\n</ol>'


def _item(pair: Pair, findings: Findings) -> str:
    sides = [(findings.one, pair.one), (findings.other, pair.other)]
    pictures = "".join(_picture(collection, row) for collection, row in sides)
    named = " and ".join(f"{escape(collection.files[row])} ({escape(str(collection.splits[row]))})"
                         for collection, row in sides)
    bits = f"{pair.bits} of 256 bits differ"
    how = bits if pair.by == LOOK else f"the same {pair.by}" + (f", but {bits}" if pair.bits else "")
    return f'<li><div class="two">{pictures}</div><p>{named}: {escape(how)}</p></li>'


def _picture(collection: Collection, row: int) -> str:
    name = collection.files[row]
    try:
        image = GalleryFile.named(collection.folder / name).picture()
    except images.ImageError as error:
        return f'<div class="missing" role="img" aria-label="{escape(name)}">{escape(f"{name}: {error}")}</div>'
    return f'<img src="{examples.data_uri(image, SIDE)}" alt="{escape(name)}">'


def _texts(findings: Findings) -> str:
    rows = "".join(f"<tr><td>{escape(text)}</td><td>{len(mine)}</td>"
                   + ("" if findings.alone else f"<td>{len(theirs)}</td>") + "</tr>"
                   for text, mine, theirs in findings.texts.texts[:SHOWN])
    heads = ["images"] if findings.alone else [findings.one.name, findings.other.name]
    return ("<h2>Equal captions</h2>\n" + (
        f"<table><tr><th>caption</th>{''.join(f'<th>{escape(head)}</th>' for head in heads)}</tr>{rows}</table>"
        if rows else "<p>None.</p>"))
