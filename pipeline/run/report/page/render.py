"""The page's content, and the page as HTML: text escaped, nothing fetched, scripts and styles
allowed by digest.
"""

import base64
import csv
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypedDict

from markupsafe import Markup

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.tables import html
from pipeline.run.report.names import STAND_IN
from pipeline.run.report.page.charts import Chart
from pipeline.run.report.page.finding import Finding
from pipeline.run.report.page.headline import COLUMNS, Headline
from pipeline.run.report.page.identity import Identity
from pipeline.run.report.page.pairs import Pair
from pipeline.run.report.page.systems import Effect, SystemHubs, corrected_for


def failures(stores: Mapping[str, Path]) -> list[dict[str, Any]]:
    """The images that failed: the rows of every store's failures.csv, each with the feature as
    `store`.
    """
    failed = []
    for name, path in stores.items():
        try:
            with (path / "failures.csv").open(encoding="utf-8", newline="") as file:
                for line in csv.DictReader(file):
                    image = {"store": name, "row": int(line["row"]), "file": line["file"]}
                    failed.append({**image, "reason": line["reason"]})
        except FileNotFoundError:
            continue
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{path}/failures.csv: not readable; run `pipeline extract` again"
            ) from None
    return failed


SCRIPTS = ("table.js", "pairs.js", "explorer.js")
# Characters that HTML does not allow: controls, and code points that are no characters.
UNKNOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


class Page(TypedDict):
    """The whole content of the page; a section without content says so."""

    title: str
    about: str  # a description of the data set, with code in backticks
    licence: str  # "" where none is stated
    finding: Finding | None  # the sentence and the pictures that it opens with
    identity: Identity  # what run it is
    headlines: list[Headline]  # a table of results for each protocol
    pairs: list[list[Pair]]  # of each of these, the differences of every two systems
    curves: list[Chart]  # of the run's heads
    further_curves: list[Chart]  # of other heads
    effects: list[Effect]  # ensembles with what each member adds
    hubs: list[SystemHubs]  # how unevenly each system finds candidates
    # What explorer.js reads, see `explorer.gather`; {} where nothing is scored.
    explorer: dict[str, Any]
    relevance: str  # the right answers in words, "" if they are each caption's own image
    run: str  # the run in words
    failures: list[dict[str, Any]]  # images without features
    stores: list[str]  # the features whose stores were searched for failures
    provenance: dict[str, Any]  # heading -> settings, digests and versions


def render(page: Page) -> str:
    """The page as HTML in which no text from data can run or load anything.

    It holds its style, script and data; a Content-Security-Policy forbids everything else.
    """
    folder = files("pipeline.run.report.page")
    style = (folder / "page.css").read_text(encoding="utf-8")
    scripts = [(folder / name).read_text(encoding="utf-8") for name in SCRIPTS]
    # JSON as gzip in base64, which explorer.js reads. No text of it can end the script.
    data = json.dumps(known(page["explorer"]), ensure_ascii=False, separators=(",", ":"))
    compressed = gzip.compress(data.encode(), mtime=0)
    return html.page(
        "run/report/page/page.html",
        known,
        page=page,
        columns=COLUMNS,
        corrected_for=corrected_for,
        policy=policy(style, *scripts),
        style=Markup(style),
        scripts=list(map(Markup, scripts)),
        stand_in=STAND_IN,
        data=base64.b64encode(compressed).decode(),
    )


def known(value: Any) -> Any:
    """Replace characters that HTML does not know in a text, or in the texts of a list or mapping.
    `Markup` is kept.
    """
    if isinstance(value, dict):
        return {key: known(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [known(inner) for inner in value]
    if type(value) is str:
        return UNKNOWN.sub("�", value)
    return value


def policy(style: str, *scripts: str) -> str:
    """The Content-Security-Policy of a page that holds its style and scripts, and loads nothing."""
    allowed = " ".join(f"'{_digest(script)}'" for script in scripts) or "'none'"
    return (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
