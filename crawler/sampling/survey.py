"""Estimates from the sample in a store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from math import isfinite, nan
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawler.errors import UsageError
from crawler.formatting import many
from crawler.frontier.sample_design import Method, Per
from crawler.inspect.sampling_frame import open_frame
from crawler.model import MISSING, Missing, State
from crawler.page.language import primary_subtag
from crawler.reasons import ErrorKind, ReasonCode
from crawler.sampling.estimators import Estimate, Sample
from crawler.sampling.hand_codes import HandCodes
from crawler.sampling.seed_groups import SeedGroup, groups_of
from crawler.sampling.variables import Value, Variable, opened, values_of, variable_of
from crawler.store.location import db_argument
from crawler.store.rows import SampleDraw
from crawler.store.statements import load_statements, unlimited

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: The status that stands for an exclusion.
_EXCLUDED = {
    ReasonCode.TYPE: "of another type",
    ReasonCode.MIRROR: "by a main site",
    ReasonCode.MIRROR_CYCLE: "by a main site",
}
_NO_VALUE = "(no value)"
_MAX_LISTED = 8  # statuses, and languages
SOFT_404 = "soft_404"
#: The names of the quantities of every sample, and the label of one of them.
_NAMES = ("disallowed", "answer", SOFT_404, "size", "links", "language", "links per page")

_SQL = load_statements("crawler.sampling")


class Unit(StrEnum):
    """The unit of an estimate."""

    SHARE = "share"  # 0 to 1
    POINTS = "points"  # the change of a share, -1 to 1: a hundredth is a percentage point
    BYTES = "bytes"
    LINKS = "links"
    NUMBER = "number"  # of a variable of the user
    COUNT = "count"  # of URLs or links: a total


#: The parts of the frame for which everything is estimated too: those of the design, or else a variable.
STRATUM, SITE = "stratum", "site"
_MAX_DOMAINS = 60


class Outcome(StrEnum):
    """What became of a drawn URL. All but the first three are nonresponse."""

    ANSWERED = "answered"
    DISALLOWED = "disallowed by robots.txt"
    NO_ANSWER = "gave no answer"
    WAITING = "not answered yet"
    OVER_BUDGET = "site at its limit"
    BLOCKED = "blocked by the operator"
    FORGOTTEN = "forgotten by the operator"
    WALL = "behind a wall"
    REFUSED = "refused at the edge"
    PAYMENT = "for payment only"


#: The outcomes of URLs whose page is unknown for a reason with one of these codes, whatever their state.
NONRESPONSE_BY_CODE: Mapping[str, Outcome] = {
    "blocked": Outcome.BLOCKED,
    "forgotten": Outcome.FORGOTTEN,
    "wall": Outcome.WALL,
    "refused_at_the_edge": Outcome.REFUSED,
    "payment_required": Outcome.PAYMENT,
}

#: The outcomes after which it is unknown how the URL would have answered. No answer at all is an answer: ``none``.
NONRESPONSE = (Outcome.WAITING, Outcome.OVER_BUDGET, *NONRESPONSE_BY_CODE.values())


class Source(NamedTuple):
    """From which values of the draws an estimate is: those of a :class:`Quantity`, or ones if they are ``label``.

    A change is of the values less those of the earlier wave.
    """

    column: str = ""
    label: str | None = None
    is_change: bool = False


_UNKNOWN = Source()


@dataclass(frozen=True, slots=True)
class Figure:
    """One estimate: ``what`` is estimated, ``among`` which URLs.

    ``total`` is that of the number of these URLs for a share, and of the sum for a mean; ``None`` if the number of URLs
    in the frame, or in this part of it, is not known.
    """

    what: str
    among: str
    unit: Unit
    estimate: Estimate
    total: Figure | None = None
    source: Source = _UNKNOWN

    @property
    def name(self) -> str:
        """What is estimated, and among which URLs."""
        return f"{self.what} ({self.among})"


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity to estimate: ``what``, ``among`` which URLs. ``values`` has one of each draw, NaN if it has none.

    ``missing`` says of each draw whether its value is not known although it has answered; empty if it is for all.
    """

    what: str
    among: str
    unit: Unit
    values: Sequence[float] | NDArray[np.float64]
    missing: Sequence[bool] | NDArray[np.bool_] = ()
    source: Source = _UNKNOWN

    def at(self, draws: NDArray[np.int64] | EllipsisType) -> Measure:
        """The same of some draws, by their places."""
        missing = np.asarray(self.missing, bool)[draws] if len(self.missing) else ()
        return replace(self, values=np.asarray(self.values, np.float64)[draws], missing=missing)

    def of(self, sample: Sample, size: float | None = None, whole: Sample | None = None) -> Figure:
        """The estimate from ``sample``, whose draws ``values`` are of.

        It has a total if ``size`` is the number of URLs in the population; a change has none. For a part whose number
        of URLs is not known, ``whole`` is the sample of the population of ``size``. A total is the mean over all URLs,
        of which those without a value have 0, times their number. It is marked if the mean is.
        """
        if any(self.missing):
            sample = sample.without_answer(self.missing)
            whole = whole and whole.without_answer(self.missing)
        made = Figure(self.what, self.among, self.unit, self._estimated(sample, self.values), source=self.source)
        if size is None or self.source.is_change:
            return made
        terms = np.nan_to_num(np.where(sample.part, np.asarray(self.values, np.float64), 0))
        total = self._estimated(whole or sample, terms).times(size)
        total = replace(total, may_be_too_narrow=total.may_be_too_narrow or made.estimate.may_be_too_narrow)
        unit = Unit.COUNT if self.unit in (Unit.SHARE, Unit.LINKS) else self.unit
        what = f"total: {'links' if self.unit is Unit.LINKS else self.what}"
        return replace(made, total=Figure(what, self.among, unit, total))

    def _estimated(self, sample: Sample, values: ArrayLike) -> Estimate:
        if self.unit is Unit.SHARE:
            return sample.share(values, open_ended=True)
        if self.unit is Unit.POINTS:
            return sample.share_change(values)
        made = sample.mean(values)
        cannot_be_negative = self.unit in (Unit.BYTES, Unit.LINKS) and not self.source.is_change and isfinite(made.low)
        return replace(made, low=max(made.low, 0.0)) if cannot_be_negative else made


@dataclass(frozen=True, slots=True)
class Quantity:
    """What each draw has of a quantity: a number, or a text (then the shares of the frequent texts are estimated).

    ``name`` is the column in the table of draws. ``what`` is the label of the estimate, or of a share with the text
    behind it. ``values`` are ``None`` for a URL that the quantity is not about, or that is nonresponse, and MISSING for
    an answer whose value is not known.
    """

    name: str
    what: str
    among: str
    unit: Unit
    values: Sequence[Value]

    @property
    def has_texts(self) -> bool:
        return any(isinstance(value, str) for value in self.values)

    def measures(self, sample: Sample) -> Iterable[Measure]:
        """The estimates of it from ``sample``."""
        missing = _are_missing(self.values)
        if self.name == SOFT_404 and all(value is None for value in self.values):  # the crawl compared no page
            return
        for label, (values,) in _numbered(sample, self):
            what = f"{self.what}{label or ''}"
            yield Measure(what, self.among, self.unit, values, missing, Source(self.name, label))

    def changes(self, before: Quantity, sample: Sample, unknown: Sequence[bool]) -> Iterable[Measure]:
        """The changes since an earlier wave, in which it was ``before``, over the units with a value in both waves.

        ``unknown`` says of each draw whether it is nonresponse in the earlier wave.
        """
        both = zip(unknown, _are_missing(before.values), _are_missing(self.values), strict=True)
        missing = [any(each) for each in both]
        is_share = self.unit is before.unit is Unit.SHARE or self.has_texts or before.has_texts
        unit = Unit.POINTS if is_share else Unit.NUMBER if self.unit is not before.unit else self.unit
        prefix = (self if self.has_texts else before).what
        for label, (old, new) in _numbered(sample, before, self):
            what, source = f"change of {prefix}{label or ''}", Source(self.name, label, is_change=True)
            changes = np.subtract(new, old).tolist()
            if not np.isnan(changes).all() or self.name != SOFT_404:
                yield Measure(what, f"{self.among} in both waves", unit, changes, missing, source)


def _numbered(sample: Sample, *waves: Quantity) -> Iterable[tuple[str | None, Sequence[Sequence[float]]]]:
    """The numbers of a quantity in each of ``waves``; if one has texts, ones and zeros for each frequent text."""
    if not any(wave.has_texts for wave in waves):
        yield None, [_numbers(wave.values) for wave in waves]
        return
    columns = [[_label(value) for value in wave.values] for wave in waves]
    for label in _frequent(sample, *columns):
        yield (
            label,
            [[float(each == label) if isinstance(each, str) else nan for each in column] for column in columns],
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """The frame, or a part of it: its ``name``, the sample for estimates of it, and its number of URLs if known.

    ``name`` is a phrase such as ``on site …``, empty for the frame.
    ``draws`` are the places of the draws that ``sample`` consists of. For a part of unknown size, ``whole`` is the
    sample of the frame, and ``size`` the number of URLs in the frame.
    """

    name: str
    sample: Sample
    size: float | None
    whole: Sample | None = None
    draws: NDArray[np.int64] | EllipsisType = ...

    def figures(self, measures: Iterable[Measure]) -> Iterable[Figure]:
        which = f" {self.name}" if self.name else ""
        for measure in measures:
            own = replace(measure.at(self.draws), among=measure.among + which)
            yield own.of(self.sample, self.size, self.whole)


@dataclass(frozen=True, slots=True)
class DrawnUrls:
    """The drawn URLs of a sample, one for each draw, with the design and the quantities of `crawler sample`.

    ``sites`` and ``strata`` have the site and the stratum of each draw. ``are_certain`` says of each whether its site
    was certain to be in the sample. ``quantities`` has what each of them has, and ``earlier`` that of the same draws in
    an earlier wave.
    """

    sample: Sample
    measures: Sequence[Measure]
    sites: Sequence[str]
    strata: Sequence[str]
    are_certain: Sequence[bool] = ()
    quantities: Sequence[Quantity] = ()
    earlier: Sequence[Quantity] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """The estimates from a sample, and the number of URLs that it does not cover.

    ``discarded`` are the draws that it replaced, ``seeds`` the seeds by what became of them. ``left_out`` is how many
    known URLs of blocked sites are not in the frame. ``outcomes`` counts the drawn URLs, each once, by what became of
    them. ``unseen_at_most`` is the upper bound for the share of a kind of URL that the sample does not contain.
    ``codes`` says in sentences where hand codes are from. ``frame_sites`` is the number of sites in the frame, 0 if it
    is a list of seeds.
    """

    draw: SampleDraw
    discarded: Sequence[SampleDraw]
    seeds: Sequence[SeedGroup]
    drawn: DrawnUrls
    left_out: int
    figures: Sequence[Figure]
    outcomes: Mapping[Outcome, int]
    unseen_at_most: float
    codes: Sequence[str] = ()
    frame_sites: int = 0

    @property
    def totals(self) -> list[Figure]:
        return [figure.total for figure in self.figures if figure.total is not None]

    @property
    def responded(self) -> int:
        """The number of drawn URLs that are no nonresponse."""
        return self.urls - sum(self.outcomes.get(outcome, 0) for outcome in NONRESPONSE)

    @property
    def draws(self) -> int:
        """The number of draws: a URL counts as often as it was drawn."""
        return len(self.drawn.sites)

    @property
    def urls(self) -> int:
        """The number of drawn URLs, each once."""
        return sum(self.outcomes.values())

    def only(self, texts: Collection[str]) -> Survey:
        """The same with those estimates alone whose names contain one of ``texts``; all of them without a text."""
        kept = [figure for figure in self.figures if not texts or any(text in figure.name for text in texts)]
        if self.figures and not kept:
            raise UsageError(f"no estimate is named so; one of them is {self.figures[-1].name!r}")
        return replace(self, figures=kept)

    def as_json(self) -> dict[str, Any]:
        """One JSON object. A bound that the sample does not determine is ``None``."""
        made: dict[str, Any] = {"seeds": [group._asdict() for group in self.seeds]}
        made |= _plain_draw(self.draw) | {"draws": self.draws, "urls": self.urls, "left_out": self.left_out}
        made |= {"responded": self.responded, "frame_sites": self.frame_sites}
        for name in (Outcome.WAITING, Outcome.OVER_BUDGET, Outcome.BLOCKED):
            made[name.name.lower()] = self.outcomes.get(name, 0)
        made["discarded"] = [_plain_draw(draw) for draw in self.discarded]
        made["outcomes"] = {outcome.value: self.outcomes.get(outcome, 0) for outcome in Outcome}
        made["unseen_at_most"] = self.unseen_at_most
        made["hand_codes"] = list(self.codes)
        return made | {"estimates": [_plain(figure) for figure in self.figures]}


def _plain_draw(draw: SampleDraw) -> dict[str, Any]:
    return draw._asdict() | {"design": json.loads(draw.design)}


def _plain(figure: Figure) -> dict[str, Any]:
    named = {"what": figure.what, "among": figure.among, "unit": figure.unit} | figure.source._asdict()
    return named | plain(figure.estimate) | {"total": figure.total and plain(figure.total.estimate)}


def plain(record: Any) -> dict[str, Any]:
    """The fields of a record by their names. A number that the sample does not determine is ``None``."""
    values = asdict(record).items()
    return {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in values}


async def survey(
    store: Store,
    now: float,
    variables: Mapping[str, Variable] | None = None,
    by: str | None = None,
    earlier: Store | None = None,
) -> Survey:
    """Estimates from the sample in the store.

    ``variables`` are variables of the user by their names. With ``by``, the parts of the frame have estimates too: each
    ``stratum`` or ``site``, or the pages with each value of a variable, which is one of ``variables``, ``NAME=…``, or
    an expression over ``pages``.
    ``earlier`` is a store with an earlier wave of the same sample; then the changes since then are estimated too.
    Raises :class:`UsageError` if the store has no sample, for a variable that cannot be computed, and if the earlier
    sample is another one.
    """
    draw = await store.samples.drawn()
    if draw is None:
        command = f"`crawler run --sample N{db_argument(store.name)}`"
        frame = await open_frame(store, now)
        waits = "" if frame is None else f": {frame.describe(now)}"
        raise UsageError(f"the store holds no sample{waits}; {command} draws one when its sampling frame is known")
    read = {name: _opened(variable, name) for name, variable in (variables or {}).items()}
    wave = await _Wave.of(store, draw, now)
    drawn, rows = await wave.drawn(read), wave.rows
    if earlier is not None:
        drawn = await wave.since(earlier, drawn, read)
    design, measures = drawn.sample, drawn.measures if rows else []
    parts = [_Part("", design, draw.frame)]
    is_list = draw.method == Method.STRATIFIED
    framed = {} if is_list else {row["site"]: row["urls"] for row in await store.query(_SQL["frame_sites"])}
    if by in (STRATUM, SITE) and rows:
        parts += wave.parts(framed, design, by)
    elif by is not None and rows:
        name, variable = (by, read[by]) if by in read else _domain_of(by)
        read.setdefault(name, variable)
        parts += wave.domains(design, name, await wave.labels(name, variable))
    figures = tuple(figure for part in parts for figure in part.figures(measures))
    unseen = design.share(np.zeros(len(rows)), open_ended=True)
    unseen_at_most = unseen.high if unseen.highest is None else unseen.highest
    (outside,) = await store.query(_SQL["blocked_outside"])
    return Survey(
        draw,
        [each for each in await store.samples.draws() if each.discarded_at is not None],
        groups_of(await store.query(_SQL["seed_ends"]), framed, is_list=is_list),
        drawn,
        outside["urls"],
        figures,
        Counter({row["drawn_id"]: row["outcome"] for row in rows}.values()),
        unseen_at_most,
        [variable.describe(name) for name, variable in read.items() if isinstance(variable, HandCodes)],
        len(framed),
    )


async def drawn_of(store: Store, draw: SampleDraw, variables: Mapping[str, Variable], now: float) -> DrawnUrls:
    """The draws of the sample in the store with all quantities that :func:`survey` estimates over all.

    Raises :class:`UsageError` for a variable that cannot be computed.
    """
    read = {name: _opened(variable, name) for name, variable in variables.items()}
    return await (await _Wave.of(store, draw, now)).drawn(read)


def _opened(variable: Variable, name: str) -> Variable | HandCodes:
    if name in _NAMES:
        raise UsageError(f"variable {name}: a quantity of every sample has this name; choose another name")
    return opened(variable, name)


def _domain_of(by: str) -> tuple[str, Variable | HandCodes]:
    """The variable that ``--by`` names: ``NAME=…``, or an expression alone."""
    has_name = by.partition("=")[0].strip().isidentifier() and "=" in by
    name, expression = variable_of(by) if has_name else (by, by)
    return name, opened(expression, name)


@dataclass(frozen=True, slots=True)
class _Wave:
    """The sample in a store, read at one moment: ``rows`` has one for each draw, with its ``outcome``."""

    store: Store
    draw: SampleDraw
    rows: Sequence[Mapping[str, Any]]
    now: float

    @classmethod
    async def of(cls, store: Store, draw: SampleDraw, now: float) -> _Wave:
        """The sample ``draw``. The limit on the pages of a site is that of the last crawl."""
        run = await store.last_run()
        limit = json.loads(run["settings"]).get("limits", {}).get("max_pages_per_site") if run else None
        rows = await store.query(_SQL["drawn"], {"pages_per_site": unlimited(limit)})
        return cls(store, draw, [{**row, "outcome": _outcome(row)} for row in rows], now)

    def sample(self, rows: Sequence[Mapping[str, Any]]) -> Sample:
        """The sample and its design, of all draws or of a stratum."""
        draw, probability = self.draw, [row["probability"] for row in rows]
        strata = [row["stratum"] for row in rows] if draw.method == Method.STRATIFIED or draw.per == Per.SITE else None
        answered = [not _is_unknown(row) for row in rows]
        if draw.sites is not None:
            first = [row["site_probability"] for row in rows]
            return Sample(probability, clusters=strata, cluster_probability=first, answered=answered)
        walks = [f"{row['walk']} {row['stratum']}" for row in rows] if draw.method == Method.RANDOM_WALK else None
        return Sample(probability, strata=strata, clusters=walks, answered=answered)

    async def drawn(self, variables: Mapping[str, Variable | HandCodes]) -> DrawnUrls:
        """The draws with all quantities to estimate."""
        quantities, sample, rows = await self.quantities(variables), self.sample(self.rows), self.rows
        return DrawnUrls(
            sample,
            [measure for quantity in quantities for measure in quantity.measures(sample)],
            [row["drawn_site"] for row in rows],
            [row["stratum"] for row in rows],
            [self.draw.method != Method.RANDOM_WALK and row["site_probability"] == 1 for row in rows],
            quantities,
        )

    async def quantities(self, variables: Mapping[str, Variable | HandCodes]) -> list[Quantity]:
        """The quantities of the crawler, and the variables of the user."""
        rows = self.rows
        said = [None if _is_unknown(row) else row["outcome"] is Outcome.DISALLOWED for row in rows]
        compared = [row["soft_404"] for row in rows]
        made = [
            Quantity("disallowed", "disallowed by robots.txt", "URLs", Unit.SHARE, said),
            Quantity("answer", "answer ", "URLs that may be asked for", Unit.SHARE, [*map(_status, rows)]),
            Quantity(SOFT_404, "soft 404", "pages that could be compared with one", Unit.SHARE, compared),
            Quantity("size", "size", "pages", Unit.BYTES, [row["body_bytes"] for row in rows]),
            Quantity("links", "links per page", "pages", Unit.LINKS, [row["links"] for row in rows]),
            Quantity("language", "language ", "pages whose text may be kept", Unit.SHARE, [*map(_language, rows)]),
        ]
        for name, variable in variables.items():
            values = await self.own_values(name, variable)
            has_texts = any(isinstance(value, str) for value in values)
            is_of_all = all(value is not None for row, value in zip(rows, values, strict=True) if _is_page(row))
            among = "pages" if is_of_all else "pages with a value of it"
            unit = Unit.SHARE if has_texts or _is_share(values) else Unit.NUMBER
            made.append(Quantity(name, f"{name} = " if has_texts else name, among, unit, values))
        return made

    async def own_values(self, name: str, variable: Variable | HandCodes) -> list[Value]:
        """The value of each draw; a URL that is no page has none.

        Raises :class:`UsageError` for codes of URLs that were not drawn: one that is misspelt would seem missing.
        """
        if isinstance(variable, HandCodes):
            known = {row[key] for row in self.rows for key in ("drawn_url", "url")}
            unknown = [] if variable.of_sites else [url for url in variable.codes if url not in known]
            if unknown:
                raise UsageError(
                    f"variable {name}: {variable.file} has codes of {many(len(unknown), 'URL')} that the sample does "
                    f"not have, such as {unknown[0]}"
                )
            return [_code(variable, row) if _is_page(row) else None for row in self.rows]
        pages = [row["url_id"] for row in self.rows if _is_page(row)]
        values = await values_of(self.store, variable, name, pages, self.now)
        return [values.get(row["url_id"]) if _is_page(row) else None for row in self.rows]

    async def labels(self, name: str, variable: Variable | HandCodes) -> list[str | Missing | None]:
        """The part that each draw belongs to; ``None`` if to none, and MISSING if that is not known.

        Pages without a value are a part, too.
        """
        if isinstance(variable, HandCodes) and variable.of_sites:  # known of URLs that are no pages too
            return [_label(_code(variable, row)) for row in self.rows]
        pairs = zip(self.rows, await self.own_values(name, variable), strict=True)
        labels = ((row, _NO_VALUE if value is None and _is_page(row) else _label(value)) for row, value in pairs)
        return [MISSING if _is_unknown(row) else label for row, label in labels]

    def parts(self, framed: Mapping[str, float], whole: Sample, by: str) -> Iterable[_Part]:
        """The strata or sites of which some URL was drawn.

        If sites were drawn first, estimates of a site hold given it.
        """
        is_list, per_site = self.draw.method == Method.STRATIFIED, self.draw.per == Per.SITE
        if by == STRATUM and not (is_list or per_site):
            raise UsageError("the sample has no strata: it was drawn from all sites together; estimate by site")
        labels = np.array([row["stratum"] if by == STRATUM else row["drawn_site"] for row in self.rows])
        for label in np.unique(labels).tolist():
            name, size = f"{'on' if by == SITE else 'of'} {by} {label}", framed.get(label)
            if by != STRATUM and (is_list or not per_site):  # the sample of such a site depends on chance
                yield _Part(name, whole.among(labels == label), size)
                continue
            (draws,) = np.nonzero(labels == label)
            given = [  # conditional on the site, if sites were drawn first
                {**row, "probability": row["probability"] / row["site_probability"], "site_probability": 1.0}
                for row in (self.rows[place] for place in draws.tolist())
            ]
            sample = self.sample(given)
            yield _Part(name, sample, float(sample.weight.sum()) if is_list else size, draws=draws)

    def domains(self, whole: Sample, name: str, labels: Sequence[str | Missing | None]) -> Iterable[_Part]:
        """The parts by a variable. A URL whose part is not known counts as one without an answer in every part."""
        are_missing = np.array([label is MISSING for label in labels])
        there = sorted({label for label in labels if isinstance(label, str)})
        if not {*there} - {_NO_VALUE}:
            raise UsageError(f"no URL of the sample has a value of {name}, so there is no part to estimate")
        if len(there) > _MAX_DOMAINS:
            raise UsageError(
                f"{name} has {len(there):,} values, and estimates are made of {_MAX_DOMAINS} parts at most: name an "
                "expression with fewer values, such as one with CASE"
            )
        whole = whole.without_answer(are_missing)
        for label in there:
            part = whole.among(are_missing | np.array([each == label for each in labels]))
            yield _Part(f"of {name} {label}", part, self.draw.frame, whole)

    async def since(self, store: Store, drawn: DrawnUrls, variables: Mapping[str, Variable | HandCodes]) -> DrawnUrls:
        """The draws with what they were in an earlier wave of the same sample, and the changes since then."""
        before, keys = list[Mapping[str, Any]](), list(map(_key, self.rows))
        if await store.samples.drawn() is not None:
            before = list((await _Wave.of(store, self.draw, self.now)).rows)
        if not before or Counter(keys) != Counter(map(_key, before)):
            raise UsageError(f"{store.name} has another sample: the waves of a panel need the same drawn URLs")
        earlier = {_key(row): row for row in before}
        wave = _Wave(store, self.draw, [earlier[key] for key in keys], self.now)
        unknown = [_is_unknown(row) for row in wave.rows]
        of_waves = {name: variable for name, variable in variables.items() if not isinstance(variable, HandCodes)}
        found, later = await wave.quantities(of_waves), {each.name: each for each in drawn.quantities}
        changes = (measure for old in found for measure in later[old.name].changes(old, drawn.sample, unknown))
        return replace(drawn, measures=[*drawn.measures, *changes], earlier=found)


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["stratum"], row["drawn_url"]


def _code(codes: HandCodes, row: Mapping[str, Any]) -> Value:
    return codes.of(row["drawn_site"], row["drawn_url"], row["url"])


def _is_page(row: Mapping[str, Any]) -> bool:
    return bool(row["state"] == State.FETCHED)


def _label(value: Value) -> str | Missing | None:
    return value if value is None or isinstance(value, str | Missing) else f"{float(value):g}"


def _numbers(values: Sequence[Value]) -> list[float]:
    return [nan if value is None or isinstance(value, Missing) else float(value) for value in values]


def _are_missing(values: Iterable[Value]) -> list[bool]:
    return [value is MISSING for value in values]


def _is_share(values: Iterable[Value]) -> bool:
    return all(value in (0, 1) for value in values if value is not None and value is not MISSING)


def _outcome(row: Mapping[str, Any]) -> Outcome:
    if row["state"] == State.QUEUED:
        return Outcome.OVER_BUDGET if row["is_full"] else Outcome.WAITING
    if (unknown := NONRESPONSE_BY_CODE.get(row["reason_code"])) is not None:
        return unknown
    if row["state"] == State.EXCLUDED and row["reason_code"] == ReasonCode.ROBOTS:
        return Outcome.DISALLOWED
    return Outcome.NO_ANSWER if _answer(row) == "none" else Outcome.ANSWERED


def _language(row: Mapping[str, Any]) -> str | None:
    """The language that a page declares, or ``"not said"``; ``None`` for no page, or if it may not be kept."""
    if row["state"] != State.FETCHED or row["noindex"]:
        return None
    return primary_subtag(row["language"] or "") or "not said"


def _is_unknown(row: Mapping[str, Any]) -> bool:
    """Whether a drawn URL is nonresponse."""
    return row["outcome"] in NONRESPONSE


def _frequent(sample: Sample, *columns: Sequence[Value]) -> list[str]:
    """The texts with the highest estimated frequency in any of ``columns``, each with a value of each draw."""
    weights: Counter[str] = Counter()
    for column in columns:
        for label, weight in zip(column, sample.weight.tolist(), strict=True):
            if isinstance(label, str):
                weights[label] += weight
    return sorted(weights, key=lambda label: (-weights[label], label))[:_MAX_LISTED]


def _status(row: Mapping[str, Any]) -> str | None:
    """The status of the answer, or what stands for it; ``None`` if the URL was not requested."""
    return None if row["outcome"] in (Outcome.DISALLOWED, *NONRESPONSE) else _answer(row)


def _answer(row: Mapping[str, Any]) -> str:
    state = row["state"]
    if state == State.FETCHED:
        return str(row["status"])
    if state == State.EXCLUDED:
        return _EXCLUDED.get(row["reason_code"], "none")
    is_whole = row["error_kind"] in (None, ErrorKind.HTTP)
    return str(row["answer"]) if row["answer"] is not None and is_whole else "none"
