"""The stores that ``--db`` names; no password in it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import UsageError
from crawler.store.body_store import open_body_store
from crawler.store.location import needs_tls, require_bodies, require_postgres, require_store, shown
from tests.command import here


@pytest.mark.parametrize(
    ("db", "seen"),
    [
        ("a.db", "a.db"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("postgresql://h:5432,[::1]:5433/db", "postgresql://h:5432,[::1]:5433/db"),
        ("postgresql://u@/db?host=/run/pg&port=5433", "postgresql://u@/db?host=/run/pg&port=5433"),
        ("postgresql://u:hush@h:5432/db?sslmode=require", "postgresql://u@h:5432/db?sslmode=require"),
        ("postgresql://u:h@u/s?h#@h/db", "postgresql://u@h/db"),
        ("postgresql://u:hush/db", "postgresql://u/db"),
        ("postgresql://u:hush@[::1/db", "postgresql://u@[/db"),
        ("postgresql://u@h:hush/db", "postgresql://u@h/db"),
        ("postgresql://u@h/db?PASSWORD=hush&sslpassword=hush&user=v", "postgresql://u@h/db?user=v"),
        ("postgresql://u@h/db?pass%77ord=hush", "postgresql://u@h/db"),
        ("postgresql://u@h/db#password=hush", "postgresql://u@h/db"),
        ("mysql://u:hush@h/db", "mysql://u@h/db"),
    ],
)
def test_what_is_shown_of_a_store(db: str, seen: str) -> None:
    assert shown(db) == seen


@given(st.text(st.characters(codec="utf-8"), max_size=8), st.sampled_from("/?#@:&=%[,"))
def test_no_password_is_shown(some: str, special: str) -> None:
    assert "hush" not in shown(f"postgresql://u:{some}hush{special}hush{some}@h:1/db?sslmode=disable&password=hush")


@pytest.mark.parametrize(
    "db", ["host=h password=hush dbname=x", "host=h PASSWORD = 'hush'", "postgresql:/u:hush@h/db", "postgres:u:hush@h"]
)
def test_an_address_in_another_form_is_no_file(db: str) -> None:
    for command in ("status", "run"):
        ended = here(command, "--db", db)
        assert (ended.code, ended.out, "hush" in ended.err) == (2, "", False)
        assert "give postgresql://user@host/name" in ended.err


@pytest.mark.parametrize("password", ["hu/sh", "hu?sh", "hu#sh", "12/sh", "hu@sh"])
def test_a_password_that_needs_encoding_is_told_so(password: str) -> None:
    with pytest.raises(UsageError, match="percent-encode") as refused:
        require_postgres(f"postgresql://u:{password}@h/db")
    assert "sh" not in str(refused.value).replace("~/.pgpass", "")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u%40v@h/db",
        "postgresql://[::1]:1/db",
        "postgres://u@/d?host=/run/pg",
    ],
)
def test_a_url_that_can_be_read_is_taken(url: str) -> None:
    assert require_store(url) == url
    require_postgres(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hush@h/db",
        "postgresql://u:p%2Fhush@h/db",
        "postgresql://:hush@h/db",
        "postgresql://u@h/db?password=hush",
        "postgresql://u@h/db?host=x&pass%77ord=hush",
        "postgresql://u@h/db?sslpassword=hush",
    ],
)
def test_a_password_in_the_url_is_refused_with_the_remedy(url: str, tmp_path: Path) -> None:
    for command in (
        ("status", "--db", url),
        ("run", "http://localhost/", "--db", url),
        ("control", "stop", "--db", url),
        ("store", "grant-reader", "--db", url),
        ("store", "copy", url, str(tmp_path / "c.db")),
    ):
        ended = here(*command)
        assert (ended.code, ended.out, "hush" in ended.err) == (2, "", False)
        assert "PGPASSWORD" in ended.err


@pytest.mark.parametrize(
    ("url", "environment", "needed"),
    [
        ("postgresql://u@db.example/x", {}, True),
        ("postgresql://u@192.0.2.1:5432/x", {}, True),
        ("postgresql://localhost,db.example/x", {}, True),
        ("postgresql://u@[2001:db8::1]:5432/x", {}, True),
        ("postgresql://u@/x?host=db.example", {}, True),
        ("postgresql://u@/x", {"PGHOST": "db.example"}, True),
        ("postgresql://db.example", {}, True),
        ("postgresql://db.example?dbname=x", {}, True),
        ("postgresql://u@localhost:5433/x", {}, False),
        ("postgresql://u@127.0.0.1,[::1]:5433/x", {}, False),
        ("postgresql:///x", {}, False),
        ("postgresql:///x", {"PGHOST": "/run/postgresql"}, False),
        ("postgresql://u@/x?host=%2Frun%2Fpostgresql", {}, False),
        ("postgresql://u@%2Frun%2Fpostgresql/x", {}, False),
        ("postgresql://u@db.example/x?sslmode=disable", {}, False),
        ("postgresql://u@db.example/x?sslmode=verify-full", {}, False),
        ("postgresql://u@db.example/x", {"PGSSLMODE": "prefer"}, False),
    ],
)
def test_a_remote_database_needs_tls_unless_the_url_says_otherwise(
    url: str, environment: dict[str, str], needed: bool
) -> None:
    assert needs_tls(url, environment) is needed


@pytest.mark.parametrize("place", ["h:hush", "[::1"])
def test_a_place_that_is_none_is_a_wrong_option(place: str) -> None:
    pytest.importorskip("asyncpg")
    ended = here("status", "--db", f"postgresql://u:hush@{place}/db")
    assert (ended.code, ended.out, "hush" in ended.err) == (2, "", False)


@pytest.mark.parametrize("hosts", ["h:65536", "h:99999999", "a:5432,b:070000", f"h:{'9' * 5000}"])
def test_no_port_is_above_65535(hosts: str) -> None:
    require_postgres("postgresql://u@a:65535,b,[::1]:1/x")
    with pytest.raises(UsageError, match="ports end at 65535"):
        require_postgres(f"postgresql://u@{hosts}/x")


@pytest.mark.parametrize("place", ["", "bodies", "/data/bodies", "s3://bucket", "s3://bucket/a/b"])
def test_a_place_for_bodies(place: str) -> None:
    assert require_bodies(place) == place


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("s3://key:hush@bucket/a", "credentials by AWS_ACCESS_KEY_ID"),
        ("s3://bucket:hush/a", "credentials by AWS_ACCESS_KEY_ID"),
        ("s3://bucket/a?secret=hush", "credentials by AWS_ACCESS_KEY_ID"),
        ("https://u:hush@host/bucket", "credentials by AWS_ACCESS_KEY_ID"),
        ("s3:///a", "give a folder, or s3://bucket/prefix"),
        ("gs://bucket", "give a folder, or s3://bucket/prefix"),
    ],
)
def test_no_place_for_bodies(place: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as raised:
        require_bodies(place)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize("url", ["nowhere", "http://h", "https://u:hush@h", "https://", "ftp://h"])
def test_an_endpoint_that_is_no_server_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library breaks off on some of them."""
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    with pytest.raises(UsageError, match="AWS_ENDPOINT_URL must be https://HOST") as raised:
        open_body_store("s3://bucket/a")
    assert "hush" not in str(raised.value)
    assert ("set AWS_ALLOW_HTTP=true" in str(raised.value)) == url.startswith("http://")
