"""Renders the facts as one HTML document, with the templates in ``templates/``. Needs the extra ``report``.

Jinja2 escapes every value that a template prints, so no text of a crawled site becomes markup. As a second defence the
document has a Content-Security-Policy (CSP Level 3): the browser loads nothing, and runs and applies only the script
and the style sheet of this package, which the policy names by their hashes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from crawler.audit.records import RunRecord
from crawler.audit.run_settings import described_settings
from crawler.audit.totals import unsent_sentence
from crawler.cli.templates import fit, template_environment
from crawler.errors import UsageError
from crawler.formatting import duration, many, size
from crawler.inspect.last_run import end_of
from crawler.inspect.seeds import describe_outcomes
from crawler.inspect.why import remedy
from crawler.model import RobotsAction, State
from crawler.reasons import ReasonCode
from crawler.report import charts, formats
from crawler.report.charts import STATES
from crawler.report.gather import Facts
from crawler.robots.mirrors import Contradiction
from crawler.sampling import load
from crawler.store.location import db_argument, names_dataset
from crawler.version import VERSION

_FOLDER = files("crawler.report")
SCRIPT = (_FOLDER / "script.js").read_text(encoding="utf-8")
_STYLE = (_FOLDER / "style.css").read_text(encoding="utf-8")


def render(facts: Facts, script: str = SCRIPT) -> bytes:
    """The report as one HTML document, in UTF-8. The same facts give the same bytes."""
    text = _ENVIRONMENT.get_template("report.html.j2").render(
        facts=facts, style=Markup(_STYLE), script=Markup(script), policy=_policy(script)
    )
    return text.encode()


def _policy(script: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(_STYLE)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _with_values(columns: Sequence[Sequence[Any]], rows: Sequence[object]) -> list[Sequence[Any]]:
    """The columns in which some row has a value; a column begins with the name of the rows' attribute."""
    return [column for column in columns if any(getattr(row, column[0]) for row in rows)]


def _states_with_urls(sites: Sequence[Any]) -> list[State]:
    return [state for state in STATES if any(getattr(site, state) for site in sites)]


#: The tone of a site's badge (a class of the style sheet), by ``robots_action``.
_ROBOTS_TONES: dict[str, str] = dict.fromkeys(RobotsAction, "bad")
_ROBOTS_TONES |= {RobotsAction.PARSE: "good", RobotsAction.FREE: "good"}
_ROBOTS_TONES |= {RobotsAction.DEFER: "mild", RobotsAction.UNREACHABLE: "mild"}

_ROBOTS_MEANINGS: Mapping[str, str] = {action: action.meaning for action in RobotsAction}


def _robots_meanings(robots: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    return [(_ROBOTS_MEANINGS.get(action, action), n) for action, n in robots]


def described(run: Any) -> tuple[tuple[str, str], ...]:
    """The settings of a run in words; one pair that says so if they cannot be read."""
    try:
        return tuple(described_settings(RunRecord.from_row(run._asdict() | {"run": run.number})))
    except UsageError as error:
        return (("Settings", f"cannot be read: {error}"),)


class _RunGroup(NamedTuple):
    """Consecutive runs with the same settings."""

    first: int
    last: int
    settings: tuple[tuple[str, str], ...]


def _runs_by_settings(runs: Sequence[Any]) -> list[_RunGroup]:
    """The settings of the first runs, then those that differ from the runs before."""
    groups: list[_RunGroup] = []
    before: frozenset[tuple[str, str]] = frozenset()
    for settings, same in groupby(runs, key=described):
        numbers = [run.number for run in same]
        groups.append(_RunGroup(numbers[0], numbers[-1], tuple(pair for pair in settings if pair not in before)))
        before = frozenset(settings)
    return groups


def _environment() -> Environment:
    environment = template_environment("crawler.report", finalize=fit)
    shown = {name: getattr(formats, name) for name in ("short", "count", "percent", "moment", "span")}
    shown |= {"size": size, "duration": duration}
    environment.filters.update(shown)
    environment.globals.update(
        shown,
        CONTRADICTIONS=Contradiction,
        REASONS=ReasonCode,
        ROBOTS_TONES=_ROBOTS_TONES,
        STATES=STATES,
        VERSION=VERSION,
        charts=charts,
        estimates=lambda: load("rendering"),
        db_argument=db_argument,
        describe_outcomes=describe_outcomes,
        ended=lambda run: end_of(run._asdict()) or "no end recorded: the run is under way, or was killed",
        many=many,
        names_dataset=names_dataset,
        remedy=remedy,
        robots_meanings=_robots_meanings,
        runs_by_settings=_runs_by_settings,
        states_with_urls=_states_with_urls,
        unsent_sentence=unsent_sentence,
        with_values=_with_values,
    )
    return environment


_ENVIRONMENT = _environment()
