"""The settings of one request: its bounds, and how it is repeated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Bounds on one request, and how failed requests are repeated.

    The pauses before the retries are ``retry_pause_s``, 3 × that, 9 × that and so on.
    """

    types: tuple[str, ...] = ("text/html", "application/xhtml+xml")
    max_body_bytes: int = 10 * 1024 * 1024
    max_redirects: int = 10
    retries: int = 3
    retry_pause_s: float = 10.0
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 30.0
    total_timeout_s: float = 120.0
    resolve: tuple[tuple[str, str], ...] = ()  # (pattern, address)
    proxy: str = ""  # the URL of an HTTP proxy
    ca_file: str = ""  # the path of a PEM file with authorities
    verify_off: tuple[str, ...] = ()  # patterns of hosts whose certificates are not verified
    allow_private: bool = False
