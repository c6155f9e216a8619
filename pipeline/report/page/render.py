"""The page as HTML: every text escaped, nothing fetched, scripts and styles allowed by their digest alone."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipeline.report.networks import STAND_IN
from pipeline.report.page.contents import Contents

# Characters that HTML does not know: controls, and code points that are no characters.
UNKNOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def render(contents: Contents) -> str:
    """The whole page. It holds its style, its script and its data, and forbids everything else (a Content-Security-
    Policy), so that no text in it can run or load anything, whatever it holds."""
    environment = Environment(loader=PackageLoader("pipeline.report", "page"), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True, undefined=StrictUndefined, finalize=_known)
    folder = files("pipeline.report.page")
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "explorer.js"))
    policy = (f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
              "base-uri 'none'; form-action 'none'")
    return environment.get_template("page.html").render(
        page=contents, data=_known(contents.explorer), policy=policy, style=Markup(style), script=Markup(script),
        stand_in=STAND_IN)


def _known(value: Any) -> Any:
    """Texts without what HTML cannot hold, also those within; all else, and what is HTML already, as it is."""
    if isinstance(value, dict):
        return {key: _known(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_known(inner) for inner in value]
    return UNKNOWN.sub("�", value) if type(value) is str else value


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
