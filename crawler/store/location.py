"""The location of a store (``--db``): a SQLite file by its path, or a PostgreSQL database by its URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os.path import isfile, join
from pathlib import Path
from shlex import quote
from urllib.parse import parse_qsl, unquote

from crawler.errors import UsageError
from crawler.url import is_loopback

#: The store that a command uses without ``--db``.
DEFAULT_DB = "crawl.db"
_HOST = r"(?:\[[0-9A-Fa-f:.]*\]|[^\[\]:,]*)(?::[0-9]*)?"
_HOSTS = re.compile(f"{_HOST}(?:,{_HOST})*")
#: The parameters of a URL that may be shown.
_HARMLESS = frozenset({"host", "port", "user", "dbname", "database", "sslmode"})
_REMEDY = "give postgresql://user@host/name, and the password by PGPASSWORD or in ~/.pgpass"
#: Parameters of a URL that are secrets.
_SECRET = frozenset({"password", "sslpassword"})


def is_url(db: str) -> bool:
    """Whether it is a database's URL, and not a file's path."""
    return "://" in db


def require_store(db: str) -> str:
    """Return ``db`` if it can name a store.

    Raises :class:`ValueError` if it is empty. Raises :class:`UsageError` if it is the address of a database in another
    form than a URL; the error does not repeat the address, because it may contain a password.
    """
    if not db:
        raise ValueError("must not be empty")
    if db == ":memory:":
        raise ValueError("a store outlives the process; name a file")
    if not is_url(db) and re.search(r"password\s*=|^postgres(ql)?:", db, re.IGNORECASE):
        raise UsageError(f"neither a file nor a database's URL; {_REMEDY}", key="store.db")
    return db


def require_bodies(location: str) -> str:
    """Return ``location`` if bodies can be kept there: a folder, ``s3://bucket/prefix``, or "" for the database.

    Raises :class:`UsageError` for other URLs. It does not repeat the URL, because it may contain a password.
    """
    scheme, is_address, rest = location.partition("://")
    if is_address and (re.search("[@?#]", rest) or ":" in rest.partition("/")[0]):
        raise UsageError(
            "contains more than a bucket and a prefix, perhaps a password, which the list of processes shows to other "
            "users; give s3://bucket/prefix, and the credentials by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or by "
            "the role of the machine",
            key="store.bodies",
        )
    if is_address and (scheme != "s3" or not rest.partition("/")[0]):
        raise UsageError("give a folder, or s3://bucket/prefix", key="store.bodies", value=location)
    return location


def absolute(location: str) -> str:
    """The location of bodies as the store keeps it: a folder from the root on, a URL without a slash at its end."""
    if is_url(location):
        return location.rstrip("/")
    return str(Path(location).resolve()) if location else ""


def shown(db: str) -> str:
    """``db`` as it may be printed, logged and kept: without a password, also if the URL is invalid."""
    if not is_url(db):
        return db
    scheme, _, rest = db.partition("://")
    secret = re.match(r"([^/?#:]*):.*@", rest, re.DOTALL)
    if secret is not None:
        rest = secret[1] + rest[secret.end() - 1 :]
    location, _, query = rest.partition("#")[0].partition("?")
    authority, slash, path = location.partition("/")
    user, at, hosts = authority.rpartition("@")
    if not _HOSTS.fullmatch(hosts):  # the part in place of a port may be a password
        hosts = hosts.partition(":")[0]
    kept = "&".join(item for item in query.split("&") if item.partition("=")[0] in _HARMLESS)
    return f"{scheme}://{user}{at}{hosts}{slash}{path}{'?' if kept else ''}{kept}"


def db_argument(db: str) -> str:
    """The argument that names the store ``db`` in a command, after a space; "" for the default store."""
    return "" if db == DEFAULT_DB else f" --db {quote(shown(db))}"


def names_dataset(db: str) -> bool:
    """Whether ``db`` names a dataset of `crawler rounds`, and no store."""
    return db.startswith("s3://") or isfile(join(db, "dataset.json"))  # Path raises for too long a name


def require_no_dataset(db: str) -> None:
    """Raise :class:`UsageError` if ``db`` names a dataset: some commands read it, the others need a store."""
    if names_dataset(db):
        raise UsageError(
            f"{shown(db)} is a dataset of `crawler rounds`: `crawler status`, `why`, `audit`, `report`, `rank`, "
            "`duplicates`, `index`, `refresh-search`, `search`, `sample` and `export` read it, and this command needs "
            "a store"
        )


def store_name(db: str) -> str:
    """The name of a store in a report: a file without its folders."""
    return shown(db) if is_url(db) or names_dataset(db) else Path(db).name


def require_postgres(url: str) -> None:
    """Raise :class:`UsageError` for a URL that names no PostgreSQL database."""
    if not re.match(r"postgres(ql)?://", url):
        raise UsageError(
            "give the path of a SQLite file, or postgresql://user@host/name", key="store.db", value=shown(url)
        )
    if re.match(r"[^:]*://[^/?#@]*:[^/?#@]*[/?#].*@", url, re.DOTALL) and not re.match(r"[^:]*://[^/?#]*@", url):
        raise bad_url(url)
    authority = re.split(r"[/?#]", url.partition("://")[2])[0]
    if authority.count("@") > 1:
        raise bad_url(url)
    hosts = authority.rpartition("@")[2]
    if any(len(port) > 5 or int(port) > 65535 for port in re.findall(r":0*([1-9][0-9]*)(?=,|$)", hosts)):
        raise UsageError("ports end at 65535", key="store.db", value=shown(url))


def require_no_password(url: str) -> None:
    """Raise :class:`UsageError` for a URL with a password: other users see it in the list of processes."""
    authority, _, rest = url.partition("://")[2].partition("/")
    user = authority.rpartition("@")[0]
    names = {unquote(item.partition("=")[0]).lower() for item in rest.partition("?")[2].split("&")}
    if ":" in user or names & _SECRET:
        raise UsageError(
            "contains a password, which the list of processes shows to other users; give postgresql://user@host/name, "
            "and the password by PGPASSWORD, in ~/.pgpass, in a file that PGPASSFILE names, or as a service",
            key="store.db",
            value=shown(url),
        )


def needs_tls(url: str, environment: Mapping[str, str]) -> bool:
    """Whether the connection must be encrypted: a host may be remote, and nothing says how to encrypt.

    ``environment`` has the variables of PostgreSQL, such as ``PGHOST``.
    """
    authority, _, rest = url.partition("://")[2].partition("/")
    authority, _, query = authority.partition("?")
    parameters = dict(parse_qsl(query or rest.partition("?")[2]))
    if "sslmode" in parameters or "PGSSLMODE" in environment or "service" in parameters:
        return False
    hosts = authority.rpartition("@")[2] or parameters.get("host", "") or environment.get("PGHOST", "")
    return any(not _is_local(host) for host in hosts.split(","))


def _is_local(host: str) -> bool:
    """Whether the host in a URL is this machine: loopback, the folder of a socket, or none."""
    host = unquote(host)
    if host.startswith("/"):
        return True
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:  # with more it is an address of IPv6
        host = host.partition(":")[0]
    return not host or is_loopback(host)


def bad_url(url: str) -> UsageError:
    """The message about a URL that cannot be read."""
    return UsageError(
        "cannot be read as a URL; percent-encode what is special in a name or password "
        f"(/ is %2F, ? is %3F, # is %23, @ is %40), or {_REMEDY}",
        key="store.db",
        value=shown(url),
    )
