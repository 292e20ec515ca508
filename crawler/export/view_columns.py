"""The columns of each view with their types. Typed formats need them before the first row."""

from __future__ import annotations

from enum import Enum, auto


class ColumnType(Enum):
    """A column's type. Any column may be NULL."""

    TEXT = auto()
    INTEGER = auto()
    NUMBER = auto()
    TIME = auto()  # seconds since the epoch
    YES = auto()  # 0 or 1
    JSON = auto()  # a JSON document, as text
    BYTES = auto()


_LETTERS = {
    "t": ColumnType.TEXT,
    "i": ColumnType.INTEGER,
    "n": ColumnType.NUMBER,
    "@": ColumnType.TIME,
    "y": ColumnType.YES,
    "j": ColumnType.JSON,
    "b": ColumnType.BYTES,
}

# view: its columns in order, each with the letter of its kind.
_COLUMNS = {
    "pages": "url:t status:i content_type:t fetched_at:@ depth:i title:t description:t keywords:t canonical_url:t "
    "document_state:t noindex:y nofollow:y body_sha256:t body_bytes:i site:t charset:t meta_url:t etag:t "
    "last_modified:t other_schemes:j directives:j note:t url_id:i version:i last_seen_at:@ gone_at:@ text_sha256:t "
    "preferences:j robots_preferences:j language:t host:t registered_domain:t headers:j address:t tls_version:t "
    "cluster_id:i",
    "resources": "url:t kind:t host:t registered_domain:t times:i site:t url_id:i",
    "preferences": "url_id:i scheme:t category:t value:t source:t line:i text:t said_at:@ url:t site:t",
    "version_preferences": "url_id:i version:i scheme:t category:t value:t source:t line:i text:t said_at:@ "
    "url:t site:t",
    "page_versions": "url:t version:i fetched_at:@ last_seen_at:@ status:i content_type:t charset:t title:t "
    "description:t keywords:t noindex:y body_sha256:t body_bytes:i text_sha256:t etag:t last_modified:t gone_at:@ "
    "site:t url_id:i language:t headers:j address:t tls_version:t",
    "revisits": "url:t due_at:@ checked_at:@ changes:n watched_s:n why:t hint:t hinted_at:@ failures:i state:t kind:t "
    "site:t url_id:i",
    "urls": "url:t site:t state:t reason_code:t reason:t depth:i discovered_from:t next_at:@ target:t attempts:i "
    "seed:y kind:t lastmod:@ url_id:i",
    "seeds": "url:t site:t outcome:t leads_to:t state:t reason_code:t reason:t pages:i failing_since:@ next_at:@ "
    "registered_domain:t leads_to_domain:t url_id:i",
    "links": "source:t target:t anchor:t rel:t source_id:i target_id:i",
    "links_glued": "source:t target:t anchor:t rel:t",
    "ranks": "url:t pagerank:n in_links:i in_sites:i url_id:i site:t",
    "site_ranks": "site:t pagerank:n pages:i in_links:i in_sites:i",
    "near_duplicates": "url:t representative:t similarity:n cluster_id:i url_id:i site:t",
    "samples": "url:t site:t stratum:t probability:n site_probability:n method:t walk:i state:t reason_code:t reason:t "
    "draw:i url_id:i page_id:i",
    "sample_frame": "url:t site:t url_id:i",
    "sites": "site:t main_site:t robots_status:t robots_expires_at:@ crawl_delay_s:n delay_s:n next_at:@ queued:i "
    "fetched:i robots_action:t robots_note:t politeness_group:t wait_code:t waits_for:t host:t "
    "registered_domain:t rests:i closed_at:@",
    "workers": "worker:i run_id:i host:t pid:i started_at:@ seen_at:@ lease_until:@ ended_at:@ ended_code:t ended_by:t "
    "pages:i requests:i groups_held:i",
    "mirrors": "site:t main_site:t evidence:t sample:i confidence:n leads_to:t contradiction:t",
    "tdmrep_files": "site:t fetched_at:@ status:t note:t body:b",
    "agent_servers": "site:t path:t agent_server:t line:i",
    "robots_versions": "site:t version_sha256:t fetched_at:@ valid_from:@ valid_until:@ status:t body:b action:t "
    "note:t robots_copy:i confirmed_at:@",
    "robots_answers": "site:t fetched_at:@ valid_from:@ valid_until:@ status:t action:t version_sha256:t "
    "answered_by:t headers:j retry_at:@ failures:i failing_since:@ note:t run_id:i robots_copy:i",
    "rup_offers": "site:t url:t found_at:@ cgi:t authentifier:t latencies:j exclude:j include_only:j max_query_span:t",
    "rup_servers": "site:t cgi:t email:t latency:t exclude:j include_only:j registered_at:@ sequence_number:i "
    "heard_at:@ known_until:@ silent_at:@ state_code:t state_detail:t reports:i ignored:i changes:i refused:i",
    "rup_mails": "taken_at:@ site:t sequence_number:i verdict_code:t verdict:t changes:i refused:i",
    "requests": "url:t site:t purpose:t started_at:@ finished_at:@ status:i error_kind:t error:t bytes:i "
    "robots_version:t verdict_line:i retry_after_s:n run_id:i robots_copy:i lag_s:n tls_version:t "
    "tls_cipher:t certificate_until:@ address:t price:t sent:y",
    "runs": "run_id:i started_at:@ finished_at:@ ended_code:t ended_by:t crawler_version:t settings:j worst_lag_s:n "
    "pages_before:i",
    "orders": "order_id:i asked_at:@ command:t name:t run_id:i done_at:@ because:t",
    "sample_draws": "number:i method:t per:t size:i seed:i drawn_at:@ frame_size:i cut_sites:i missed:i missed_sites:i "
    "follows:y held_from:i stands:y share:n sites:i sites_by:t design:j design_sha256:t discarded_at:@",
}

#: Every view but those by number (docs/store.md), with its columns in order.
VIEWS: dict[str, dict[str, ColumnType]] = {
    view: {name: _LETTERS[letter] for name, letter in (column.split(":") for column in columns.split())}
    for view, columns in _COLUMNS.items()
}
