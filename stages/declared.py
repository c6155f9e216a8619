"""A command declared by a class: its fields are the command's options, its docstring the help."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import click
from click.core import ParameterSource

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from stages.values import FilePath, RootPath

Command = TypeVar("Command", bound=Callable[..., Any])
Option: TypeAlias = Callable[[Command], Command]
# The most columns of an option's choices in its line of the help.
CHOICES = 56


def flag(*names: str, help: str) -> Option:
    """An option without a value."""
    return click.option(*names, is_flag=True, help=help)


class Group:
    """Options of which a command takes one argument: what `build` makes of their values."""

    def __init__(
        self, argument: str, build: Callable[..., Any], *options: Callable[[Any], Any]
    ) -> None:
        self.argument = argument
        self.build = build
        self.options = options
        parameters = click.command(self._with_options(lambda: None)).params
        self.names = [str(parameter.name) for parameter in parameters]

    def __call__(self, command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            values = {name: given.pop(name) for name in self.names}
            command(**{self.argument: self.build(**values)}, **given)

        return self._with_options(wrapped)

    def _with_options(self, command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(self.options):
            command = option(command)
        return command

    def default(self) -> Any:
        """The argument where none of the options is given."""
        command = click.command(self._with_options(lambda: None))
        with command.make_context(self.argument, [], resilient_parsing=True) as context:
            return self.build(**context.params)


@dataclasses.dataclass(frozen=True)
class Scope:
    """Where options have an effect; the fields of these options are marked with it.

    why: the message where they have none, after the option.
    """

    why: str


class Options:
    """What a command takes: an argument or option of click for each field, which has its default.

    Its docstring is the command's help. After the option, a field's type may name its scopes.
    """

    def check(self) -> None:
        """Refuse options that have no effect beside the others. The command line alone does it."""

    def refuse(self, scope: Scope) -> None:
        """Refuse the options of a scope, where they have no effect."""
        for field in dataclasses.fields(cast(Any, self)):
            option, *scopes = cast(Any, field.type).__metadata__
            if scope not in scopes:
                continue
            names = option.names if isinstance(option, Group) else [field.name]
            refuse(*names, why=scope.why)


def command(taken: type[Options], function: str, *around: Callable[..., Any]) -> click.Command:
    """The command that takes these options, and calls a function of `stages` with them.

    function: as for `stage`; around: what adds other options and arguments, such as
    `with_settings`.
    """

    def run(**given: Any) -> None:
        chosen = taken(**{field.name: given.pop(field.name) for field in fields})
        chosen.check()
        stage(function)(options=chosen, **given)

    fields = dataclasses.fields(cast(Any, taken))
    decorated: Callable[..., None] = run
    for decorate in reversed(around):
        decorated = decorate(decorated)
    for field in reversed(fields):
        decorated = _with_option(decorated, field)
    return click.command(cls=CheckedCommand, help=taken.__doc__)(decorated)


class CheckedCommand(click.Command):
    """A command that refuses a second value of an option that takes one, and lists the names of
    parts, among them those of other packages, in its help alone.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse an option with two values where it takes one: click would use the last."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(list(args))
            _refuse_repeats(order)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for parameter in self.params:
            if isinstance(parameter, click.Option):
                _name_long_choices(parameter)
        super().format_options(ctx, formatter)


def _refuse_repeats(order: Sequence[click.Parameter]) -> None:
    """Check that options that take one value are given once. order: of the command line."""
    seen = set[str | None]()
    for option in order:
        if not isinstance(option, click.Option) or option.is_flag or option.multiple:
            continue
        if option.name in seen:
            raise InputError(f"{option.opts[-1]} is given twice; give it once")
        seen.add(option.name)


def _name_long_choices(option: click.Option) -> None:
    """Move choices that are too long for a line of the help from an option's name into its text."""
    if not isinstance(option.type, click.Choice) or option.metavar is not None:
        return
    choices = list(map(str, option.type.choices))
    if len("|".join(choices)) > CHOICES:
        option.metavar = "NAME"
        option.help = f"{option.help} Of: {', '.join(choices)}."


def _with_option(
    command: Callable[..., None], field: dataclasses.Field[Any]
) -> Callable[..., None]:
    """Add the option, argument or group of a field, with the field's name and default."""
    option = cast(Any, field.type).__metadata__[0]
    decorated: Any = option(command)
    if not isinstance(option, Group):
        parameter = decorated.__click_params__[-1]
        parameter.name = field.name
        if field.default is not dataclasses.MISSING:
            parameter.default = field.default
    return cast(Callable[..., None], decorated)


def stage(function: str) -> Callable[..., None]:
    """Import the function that does a command's work: it may need torch.

    function: FILE.NAME of `stages`, or "module:name" of an extension or another package.
    """
    module, colon, name = function.partition(":")
    if not colon:
        file, _, name = function.partition(".")
        module = f"stages.{file}"
    return cast(Callable[..., None], getattr(import_module(module), name))


def was_given(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse(*names: str, why: str) -> None:
    """Check that the user did not give options that have no effect here. why: the message after the
    option.
    """
    flags = {option.name: option.opts[-1] for option in click.get_current_context().command.params}
    for name in names:
        if was_given(name):
            raise InputError(f"{flags[name]} {why}")


def with_settings(
    command: Callable[..., None], required: bool = True, of_files: Sequence[str] = ()
) -> Callable[..., None]:
    """Add --root, --params and -S to a command, which receives `paths` and the checked
    `settings`.

    required: whether it needs a settings file. of_files: options that name files of scores; where
        one is given, only the sections that measure files are checked.
    """

    @click.option(
        "--root",
        type=RootPath(),
        default=Path(),
        show_default="current directory",
        is_eager=True,
        help="The project's folder, which must exist: everything is read and written below it, and relative "
        "paths of other options start there.",
    )
    @click.option(
        "--params",
        type=FilePath(dir_okay=False),
        show_default="params.yaml of the root, or here",
        help="The settings file.",
    )
    @click.option(
        "-S",
        "--set",
        "changes",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change one setting for this run: -S training.sample.epochs=3. May be given several times; of one key the "
        "last holds.",
    )
    @functools.wraps(command)
    def wrapped(root: Path, params: Path | None, changes: tuple[str, ...], **options: Any) -> None:
        if params is None:
            params = settings_file(root)
            click.get_current_context().meta["shipped"] = params is None
            if required:
                refuse_shipped()
        if params is None:  # without a file of its own, the shipped one
            params = settings.written.template("params.yaml")
        chosen: settings.AnySettings | None = None
        if not changes and any(options[name] for name in of_files):
            chosen = settings.load_for_judging(params)
        if chosen is None:
            chosen = settings.load(params, changes)
        command(paths=Paths(root), settings=chosen, **options)

    return wrapped


# Like `with_settings`, for commands that run in any folder: without a settings file they use the
# shipped one.
with_settings_or_shipped = functools.partial(with_settings, required=False)


def settings_file(root: Path) -> Path | None:
    """The settings file of the root, or of the current directory, if there is one."""
    for place in (root / "params.yaml", Path("params.yaml")):
        if place.exists():
            return place
    return None


def refuse_shipped() -> None:
    if click.get_current_context().meta.get("shipped"):
        raise InputError(
            "there is no params.yaml here; `pipeline init` writes one, --params names one elsewhere"
        )
