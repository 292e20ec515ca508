"""Options of commands that set a setting, made from the table of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from crawler.cli.output import tell
from crawler.cli.shared import OneOf
from crawler.errors import ConfigError, UsageError, joined
from crawler.fields.kinds import Form
from crawler.settings.keys import KEYS, Key
from crawler.settings.loading import apply, load_file
from crawler.settings.seeds import Seeds, all_seeds
from crawler.settings.settings import Settings

Command = TypeVar("Command", bound=Callable[..., object])

_OFF = "--no-"


def setting_options(*names: str, hidden: bool = False) -> Callable[[Command], Command]:
    """Give a command the options of the settings ``names``; :func:`given_settings` reads them.

    The help does not list ``hidden`` ones.
    """

    def add(command: Command) -> Command:
        for name in reversed(names):
            command = _option(KEYS[name], hidden)(command)
        return command

    return add


def given_settings(options: Mapping[str, Any]) -> dict[str, object]:
    """The settings that the user gave by options, as :func:`crawler.settings.loading.apply` takes them.

    The options of ``crawler`` itself stand before the command; those of the command win over them.
    """
    context = click.get_current_context(silent=True)
    before = {} if context is None else context.find_root().params
    given = {**_given(before), **_given(options)}
    return {key.name: _as_setting(key, value) for key, value in given.items()}


def _given(options: Mapping[str, Any]) -> dict[Key, Any]:
    return {_key_of[name]: value for name, value in options.items() if name in _key_of and value not in (None, ())}


def config_option(*, hidden: bool = False) -> Callable[[Command], Command]:
    """Give a command the option ``--config FILE``; :func:`configured` reads the file."""
    return click.option(
        "--config",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="A TOML file of settings; options win over it.",
        hidden=hidden,
    )


def configured(settings: Settings, config: Path | None, options: Mapping[str, Any]) -> Settings:
    """``settings`` with those of a configuration file, and then of the options, in place of theirs.

    Raises :class:`UsageError` that names every mistake of both.
    """
    mistakes: list[UsageError] = []
    try:
        settings = load_file(settings, config) if config else settings
    except ConfigError as error:
        mistakes.append(error)
    try:
        settings = apply(settings, given_settings(options), source="command line")
    except ConfigError as error:
        mistakes.append(error)
    if mistakes:
        raise joined(mistakes)
    return settings


def named_seeds(settings: Settings, texts: tuple[str, ...]) -> Seeds:
    """The seeds that the command line and ``seeds.file`` name, each once."""
    skip_bad = settings.seeds.skip_bad
    return all_seeds(texts, settings.seeds.file, source="command line", skip_bad=skip_bad, tell=tell)


def _as_setting(key: Key, value: Any) -> object:
    """The value of an option as a TOML file would have it."""
    if key.kind.form is Form.WORDS:
        return " ".join(value)
    return not value if key.option.startswith(_OFF) else value


def _parameter(name: str) -> str:
    """The name that click gives to the value of the option of a setting."""
    return name.replace(".", "_")


_key_of = {_parameter(key.name): key for key in KEYS.values() if key.option}


def _option(key: Key, hidden: bool) -> Callable[[Command], Command]:
    names = [key.option, _parameter(key.name)]
    kind = key.kind
    text = (key.option_help or key.help) + _default(key)
    form: dict[str, Any] = {"metavar": key.metavar or kind.metavar, "type": str}
    match kind.form:
        case Form.FLAG if key.is_remembered:
            names[0] = f"{key.option}/{_OFF}{key.option[2:]}"
            form = {"default": None}
        case Form.FLAG:
            form = {"is_flag": True, "default": None}
        case Form.CHOICE:
            form = {"type": OneOf(kind.choices)}
        case Form.LIST | Form.WORDS:
            form |= {"multiple": True}
        case Form.WHOLE:
            form |= {"type": int}
        case Form.NUMBER:
            form |= {"type": float}
    return click.option(*names, **form, hidden=hidden, help=text)


def _default(key: Key) -> str:
    """The text that the help adds for a default other than "none"."""
    shown = isinstance(key.default, str | int | float) and not isinstance(key.default, bool) and key.default != ""
    return f"  [default: {key.kind.written(key.default)}]" if shown else ""
