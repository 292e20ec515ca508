"""The functions of the user that choose links and pages: found by their importable names, and named in the store."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from crawler.engine.crawl_settings import NO_HOOK, HookSettings
from crawler.engine.hooks import FoundLink, Hooks, name_of
from crawler.errors import Setting, UsageError
from crawler.frontier.decide import Outcome
from crawler.settings.settings import Settings
from crawler.stored_pages import Page, page_of

Follow = Callable[[FoundLink], bool | Awaitable[bool]]
Keep = Callable[[Page], bool | Awaitable[bool]]

_ROLES = ("follow", "keep")


def with_functions(settings: Settings, follow: Follow | str | None, keep: Keep | str | None) -> Settings:
    """``settings`` that name ``follow`` and ``keep``, where they are given: the store records the names."""
    given = {"follow": follow, "keep": keep}
    named = {role: _importable(what) for role, what in given.items() if what is not None}
    return replace(settings, hooks=replace(settings.hooks, **named))


def hooks_of(
    settings: HookSettings,
    follow: Follow | str | None = None,
    keep: Keep | str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> Hooks | None:
    """The hooks of a run: the functions that are given, else those that ``settings`` name.

    Raises :class:`UsageError` for a name that cannot be imported.
    """
    chosen: Any = follow if callable(follow) else _found("follow", settings.follow)
    kept: Any = keep if callable(keep) else _found("keep", settings.keep)
    if chosen is None and kept is None and not headers:
        return None
    return Hooks(chosen, None if kept is None else _of_outcome(kept), name_of(kept) if kept else "", headers)


def require_hooks(before: Mapping[str, Any] | None, settings: HookSettings) -> None:
    """Raise :class:`UsageError` if the last run had a function that this run does not name.

    The store records names only. A run calls no function that it does not name itself, so that a store from somebody
    else runs no code.
    """
    known = (before or {}).get("hooks") or {}
    for role in _ROLES:
        name = known.get(role) or NO_HOOK
        if name != NO_HOOK and not getattr(settings, role):
            raise UsageError(
                f"the crawl was begun with the function {name}, and would go on without it: name it with ",
                Setting(f"hooks.{role}", name),
                ", or go on without it by ",
                Setting(f"hooks.{role}", NO_HOOK),
            )


def _of_outcome(keep: Keep) -> Callable[[Outcome], bool | Awaitable[bool]]:
    return lambda outcome: keep(page_of(outcome))


def _importable(function: Any) -> str:
    """The name of a function as :func:`_found` reads it. A function of a script is called ``__main__:NAME``."""
    if isinstance(function, str):
        return function
    return f"{getattr(function, '__module__', None) or '__main__'}:{name_of(function)}"


def _found(role: str, name: str) -> Callable[..., Any] | None:
    """The function ``name``, which is ``MODULE:FUNCTION``. The module may be in the current folder."""
    if not name or name == NO_HOOK:
        return None
    module, _, path = name.partition(":")
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:  # the module is the user's, and may raise anything
        raise UsageError(
            Setting(f"hooks.{role}", name), f": cannot be imported here: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise UsageError(Setting(f"hooks.{role}", name), ": is no function")
    return found  # type: ignore[no-any-return]
