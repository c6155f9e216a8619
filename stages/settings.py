"""Print the settings that hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stages import options

if TYPE_CHECKING:
    from pipeline.files.parsing import to_yaml
    from pipeline.parts.errors import unknown
    from pipeline.settings import Settings
    from pipeline.settings.loading import SHIPPED
    from pipeline.settings.paths import Paths


@click.command
@click.argument("key", required=False)
@options.with_settings_or_shipped
def command(paths: Paths, settings: Settings, key: str | None) -> None:
    """Print the settings that hold: params.yaml over those that ship, recipes and schedules with what their bases say.

    KEY is a part of them, such as training or recipes.vse2ad-gpo.

    Example: pipeline settings recipes.vse2ad-gpo
    """
    part: Any = settings.model_dump(mode="json", by_alias=True)
    if key is None:
        click.echo(f"# What each means: {SHIPPED}")
    for name in key.split(".") if key else ():
        if not isinstance(part, dict) or name not in part:
            raise unknown("setting", name, part if isinstance(part, dict) else ())
        part = part[name]
    click.echo(to_yaml(part).removesuffix("...\n"), nl=False)
