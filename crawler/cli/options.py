"""Options of commands that set a setting, made from the table of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from crawler.cli.logs import set_up_logging
from crawler.cli.output import tell
from crawler.fields.kinds import Form
from crawler.settings.keys import KEYS, SECTIONS, Key
from crawler.settings.loading import apply, load_file
from crawler.settings.seeds import Seeds, all_seeds
from crawler.settings.settings import Settings

P = ParamSpec("P")
Command = TypeVar("Command", bound=Callable[..., object])

_OFF = "--no-"
_COLUMN = 27  # the width of the first column; a longer option has a line of its own


def setting_options(*names: str) -> Callable[[Command], Command]:
    """Give a command the options of the settings ``names``; :func:`given_settings` reads them."""

    def add(command: Command) -> Command:
        for name in reversed(names):
            command = _option(KEYS[name])(command)
        return command

    return add


def log_options(command: Callable[P, int]) -> Callable[P, int]:
    """Give a command that takes no settings the options on log records, and set up logging before it runs."""
    names = ("output.log_level", "output.log_format")

    @setting_options(*names)
    @wraps(command)
    def with_logging(*args: P.args, **kwargs: P.kwargs) -> int:
        options = {_parameter(name): kwargs.pop(_parameter(name)) for name in names}
        output = apply(Settings(), given_settings(options), source="command line").output
        set_up_logging(output.log_level, output.log_format)
        return command(*args, **kwargs)

    return with_logging


def given_settings(options: Mapping[str, Any]) -> dict[str, object]:
    """The settings that the user gave by options, as :func:`crawler.settings.loading.apply` takes them."""
    given = {_key_of[name]: value for name, value in options.items() if value not in (None, ())}
    return {key.name: _as_setting(key, value) for key, value in given.items()}


config_option = click.option(
    "--config", metavar="FILE", type=click.Path(path_type=Path), help="A TOML file of settings; options win over it."
)


def configured(settings: Settings, config: Path | None, options: Mapping[str, Any]) -> Settings:
    """``settings`` with those of a configuration file, and then of the options, in place of theirs."""
    settings = load_file(settings, config) if config else settings
    return apply(settings, given_settings(options), source="command line")


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


def _option(key: Key) -> Callable[[Command], Command]:
    names = (key.option, _parameter(key.name))
    kind = key.kind
    text = (key.option_help or key.help) + _default(key)
    match kind.form:
        case Form.FLAG if key.is_remembered:
            return click.option(f"{key.option}/{_OFF}{key.option[2:]}", names[1], default=None, help=text)
        case Form.FLAG:
            return click.option(*names, is_flag=True, default=None, help=text)
        case Form.CHOICE:
            return click.option(*names, type=click.Choice(kind.choices), help=text)
        case Form.LIST | Form.WORDS:
            return click.option(*names, multiple=True, metavar=kind.metavar, help=text)
        case form:
            type_ = {Form.WHOLE: int, Form.NUMBER: float, Form.DURATION: _number_or_text, Form.TEXT: str}[form]
            return click.option(*names, type=type_, metavar=key.metavar or kind.metavar, help=text)


def _default(key: Key) -> str:
    """The text that the help adds for a default other than "none"."""
    shown = isinstance(key.default, str | int | float) and not isinstance(key.default, bool) and key.default != ""
    return f"  [default: {key.kind.written(key.default)}]" if shown else ""


def _number_or_text(value: str) -> float | str:
    """A duration as TOML has it: a number of seconds, or a text with a unit."""
    try:
        return float(value)
    except ValueError:
        return value


class SectionedCommand(click.Command):
    """A command whose help lists its options by the section of the setting, in the order of the table."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; click calls this."""
        records: dict[str, list[tuple[str, str]]] = {section: [] for section in (*SECTIONS, "")}
        for parameter in self.get_params(ctx):
            key = _key_of.get(parameter.name or "")
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                records[key.section if key else ""].append(record)
        for section, options in records.items():
            if options:
                with formatter.section(section.capitalize() or "Other options"):
                    formatter.write_dl([(name.ljust(_COLUMN), text) for name, text in options], col_max=_COLUMN)
