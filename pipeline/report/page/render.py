"""What the page holds, and the page as HTML: text escaped, nothing fetched, scripts and styles allowed by digest."""

import base64
import csv
import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipeline.features.store.layout import read_header
from pipeline.files.parsing import from_json
from pipeline.parts.errors import InputError
from pipeline.report.names import STAND_IN
from pipeline.report.page.charts import Chart
from pipeline.report.page.headline import Headline
from pipeline.report.page.systems import Effect, SystemHubs


@dataclass(frozen=True)
class Failure:
    """An image without features."""

    store: str  # the feature
    row: int  # its row in the store
    file: str  # its file name
    reason: str  # why it has no features


def failures(stores: Mapping[str, Path]) -> list[Failure]:
    """Which images failed: the rows of every store's failures.csv."""
    found = []
    for name, path in stores.items():
        try:
            with (path / "failures.csv").open(encoding="utf-8", newline="") as file:
                found += [Failure(name, int(row["row"]), row["file"], row["reason"]) for row in csv.DictReader(file)]
        except FileNotFoundError:
            continue
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}/failures.csv: not readable; run `pipeline extract` again") from None
    return found


def made_from(path: Path) -> dict[str, Any]:
    """What made a store: its fingerprint and its digest, sizes, and the versions of libraries."""
    read_header(path)
    attributes = from_json((path / "zarr.json").read_text(encoding="utf-8"))["attributes"]
    return {key: attributes[key] for key in ("fingerprint", "fingerprint_digest", "layout", "made_with")
            if key in attributes}


# Characters that HTML does not allow: controls, and code points that are no characters.
UNKNOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


@dataclass(frozen=True)
class Contents:
    """What the page holds. A section without content says so.

    Attributes:
        title: The data set's name.
        about: What the data set is; `code` in backticks.
        licence: The data set's licence.
        headlines: One table of results for each protocol.
        curves: Learning curves of the run's heads, a chart for each recipe and text encoder.
        further_curves: Learning curves of other heads.
        effects: Ensembles, with what each member adds.
        hubs: How unevenly each system finds candidates.
        explorer: What explorer.js reads, see `explorer.gather`; {} where nothing is scored.
        relevance: What is right, in words, where it is more than each caption's own image.
        run: The run in words.
        failures: Images without features.
        stores: The feature stores that were looked at.
        provenance: Heading -> settings, digests and versions.
    """

    title: str
    about: str
    licence: str
    headlines: Sequence[Headline] = ()
    curves: Sequence[Chart] = ()
    further_curves: Sequence[Chart] = ()
    effects: Sequence[Effect] = ()
    hubs: Sequence[SystemHubs] = ()
    explorer: Mapping[str, Any] = field(default_factory=dict)
    relevance: str = ""
    run: str = ""
    failures: Sequence[Failure] = ()
    stores: Sequence[str] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)


def render(contents: Contents) -> str:
    """Render the page. It holds its style, script and data; a Content-Security-Policy forbids everything else.

    Args:
        contents: What the page holds.

    Returns:
        An HTML document in which no text from data can run or load anything.
    """
    environment = Environment(loader=PackageLoader("pipeline.report", "page"), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True, undefined=StrictUndefined, finalize=_known)
    folder = files("pipeline.report.page")
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "explorer.js"))
    policy = (f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
              "base-uri 'none'; form-action 'none'")
    # JSON as gzip in base64, which explorer.js reads. No text of it can end the script.
    data = json.dumps(_known(contents.explorer), ensure_ascii=False, separators=(",", ":"))
    return environment.get_template("page.html").render(
        page=contents, data=base64.b64encode(gzip.compress(data.encode(), mtime=0)).decode(), policy=policy,
        style=Markup(style), script=Markup(script), stand_in=STAND_IN)


def _known(value: Any) -> Any:
    """Replace characters that HTML does not know in a text, or in the texts of a list or mapping. `Markup` is kept."""
    if isinstance(value, dict):
        return {key: _known(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_known(inner) for inner in value]
    return UNKNOWN.sub("�", value) if type(value) is str else value


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
