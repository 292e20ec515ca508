"""Pages and queries for PostgreSQL's text search (its manual, chapter 12), ranked as FTS5 ranks.

A page is a row or more with a ``tsvector`` of its words, told apart as FTS5 does it (``tokenizer.py``) and
labelled by the weight of their field. A word alone and a phrase get from ``ts_rank_cd`` the sum of the weights of all
places where they stand: the frequency in BM25, as FTS5's ``bm25()`` has it (https://www.sqlite.org/fts5.html, section
5.1.1). ``ts_rank`` knows neither how rare a word is nor how long the page.

A ``tsvector`` holds 255 places of a word, places up to 16,383, a word of 2,046 octets, and less than a megabyte (12.9).
A page that needs more has more rows; in each the last words of the one before stand again, for phrases across the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from crawler.search.query import Phrase, Query
from crawler.search.tokenizer import words

#: The labels of title, anchors, description, keywords, headings and body: A weighs 50, B 20, C 5, D 1. There are four
#: labels, so that keywords, which weigh 2, stand there twice.
_FIELDS = ((0, "A"), (1, "B"), (2, "C"), (3, ""), (3, ""), (4, "C"), (5, ""))
_KEYWORDS = 3
_HEAVIEST = 50

_MOST_PLACES = 16_383
_MOST_PLACES_OF_A_WORD = 255
_MOST_CHARS = 150_000  # of words, up to four octets each
_MOST_WORD_CHARS = 500  # of longer ones these count
_AGAIN = 20

# What is looked for, and in which group of alternatives: each from 1 up must have one on the page, 0 adds to the rank
# alone, -1 must not be there. ?1 has them in JSON.
FOUND = f"""
term AS MATERIALIZED (
  SELECT row_number() OVER () AS n, (t ->> 0)::int AS alternatives, (t ->> 1)::tsquery AS query
  FROM json_array_elements(?1::json) AS t),
place AS MATERIALIZED (
  SELECT t.n, t.alternatives, x.url_id, x.part FROM term t JOIN search_text x ON x.words @@ t.query),
matching AS MATERIALIZED (
  SELECT url_id FROM place GROUP BY url_id
  HAVING count(DISTINCT alternatives) FILTER (WHERE alternatives > 0) = (SELECT max(alternatives) FROM term)
    AND count(*) FILTER (WHERE alternatives < 0) = 0),
collection AS MATERIALIZED (SELECT count(*) AS pages, avg(size)::double precision AS size FROM search_page),
rarity AS MATERIALIZED (
  SELECT n, greatest(ln((pages - have + 0.5) / (have + 0.5)), 1e-6) AS idf
  FROM (SELECT n, count(DISTINCT url_id)::double precision AS have FROM place GROUP BY n) AS h, collection),
sought AS (
  SELECT p.url_id, p.part, array_agg(p.n) AS terms
  FROM matching JOIN place p USING (url_id) WHERE p.alternatives >= 0 GROUP BY p.url_id, p.part),
frequency AS (
  SELECT x.url_id, t.n, {_HEAVIEST} * sum(ts_rank_cd('{{0.02, 0.1, 0.4, 1}}', x.words, t.query)::double precision) AS f
  FROM sought s JOIN search_text x USING (url_id, part) JOIN term t ON t.n = ANY (s.terms) GROUP BY x.url_id, t.n),
found AS MATERIALIZED (
  SELECT f.url_id, sum(r.idf * f.f * 2.2 / (f.f + 1.2 * (0.25 + 0.75 * s.size / c.size)) ORDER BY f.n) AS text_score
  FROM frequency f JOIN rarity r USING (n) JOIN search_page s USING (url_id) CROSS JOIN collection c
  GROUP BY f.url_id)"""


def with_all(query: Query) -> str:
    """For pages that have all of it; those that have the words in a row get more."""
    alternatives = [*((phrase,) for phrase in query.phrases), *query.words]
    return _expression(query, alternatives, [] if query.in_a_row is None else [query.in_a_row])


def with_some(query: Query) -> str | None:
    """For pages that have all phrases and some of the words; ``None`` where that asks for no other pages."""
    if len(query.words) < 2:
        return None
    some = [form for forms in query.words for form in forms]
    return _expression(query, [*((phrase,) for phrase in query.phrases), some], [])


def _expression(query: Query, alternatives: Iterable[Iterable[Phrase]], besides: Iterable[Phrase]) -> str:
    wanted = [(n, _tsquery(phrase)) for n, group in enumerate(alternatives, 1) for phrase in group]
    more = [(0, _tsquery(phrase)) for phrase in besides]
    unwanted = [(-1, _tsquery(phrase)) for phrase in query.excluded]
    return json.dumps([*wanted, *more, *unwanted])


def _tsquery(phrase: Phrase) -> str | None:
    """``None`` for one without words, which is nowhere."""
    said = words(phrase.text)
    if not said:
        return None
    return " <-> ".join(f"'{word[:_MOST_WORD_CHARS]}'" for word in said) + ":*" * phrase.is_prefix


def vectors(texts: Sequence[str]) -> tuple[int, list[str]]:
    """How many words a page has, and its ``tsvector`` or several of them.

    ``texts`` are title, anchors, description, keywords, headings and body, each
    :func:`clean <crawler.search.page_text.clean>`.
    """
    said = [words(text) for text in texts]
    return sum(map(len, said)), list(_vectors((said[field], label) for field, label in _FIELDS))


def _vectors(fields: Iterable[tuple[Sequence[str], str]]) -> Iterator[str]:
    places: dict[str, list[str]] = {}
    at = chars = 0
    for said, label in fields:
        for n, word in enumerate(said):
            here = places.get(word)
            if here is None:
                here = places[word] = []
                chars += len(word)
            here.append(f"{at + 1}{label}")
            at += 1
            if at >= _MOST_PLACES - 1 or len(here) >= _MOST_PLACES_OF_A_WORD or chars >= _MOST_CHARS:
                yield _vector(places)
                places, at, chars = {}, 0, 0
                for again in said[max(0, n + 1 - _AGAIN) : n + 1]:
                    at += 1
                    places.setdefault(again, []).append(f"{at}{label}")
        at += 1  # no phrase goes from one field to the next
    yield _vector(places)


def _vector(places: dict[str, list[str]]) -> str:
    return " ".join([f"'{word[:_MOST_WORD_CHARS]}':{','.join(at)}" for word, at in places.items()])
