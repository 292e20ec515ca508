"""The reading role of a store on PostgreSQL: it may read the tables and views, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from contextlib import suppress

from crawler.errors import Argument, StoreError, UsageError
from crawler.store.postgres.connection import Postgres, ensure_schema
from crawler.store.sql.schema import load_queries
from crawler.store.statements import Queries

_ITERATIONS = 4096  # the default of PostgreSQL


async def grant_reader(url: str, role: str, password: str | None) -> bool:
    """Let ``role`` read the store at ``url``; with ``password``, also set its password. Returns whether it is new.

    Everything else that the role was granted on the tables of the store is revoked. The server receives a SCRAM
    verifier (RFC 5803) in place of the password. Raises :class:`UsageError` for a role that could do more than read.
    """
    database = Postgres(url)
    read = Queries(database.execute_fetchall, load_queries("postgres"))
    try:
        await ensure_schema(database, may_make=False)
        (found,) = await read.fetch("reader_role", role=role)
        if found.is_superuser or found.is_owner:
            kind = "a superuser" if found.is_superuser else "an owner of the store, or a member of its owner"
            raise UsageError(Argument("role", role), f": {kind}, which can do more than read; choose another role")
        await database.execute("BEGIN")
        try:
            if not found.exists:
                await _execute_each(database, read, "make_reader", role=role)
            await _execute_each(database, read, "grant_reader", role=role)
            if password is not None:
                await _execute_each(database, read, "set_password", role=role, verifier=scram_verifier(password))
            await database.execute("COMMIT")
        except BaseException:
            with suppress(StoreError):
                await database.execute("ROLLBACK")
            raise
        return not found.exists
    finally:
        await database.close()


async def _execute_each(database: Postgres, read: Queries, name: str, **parameters: object) -> None:
    """Execute the statements that are the rows of a query: a role's name cannot be a parameter of a grant."""
    for row in await read.fetch(name, **parameters):
        await database.execute(row.statement)


def scram_verifier(password: str, salt: bytes | None = None) -> str:
    """The value that PostgreSQL stores in place of a password: a verifier of SCRAM-SHA-256 (RFC 5802, 3; RFC 5803)."""
    salt = secrets.token_bytes(16) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    client = hmac.digest(salted, b"Client Key", "sha256")
    stored, server = hashlib.sha256(client).digest(), hmac.digest(salted, b"Server Key", "sha256")
    texts = (base64.b64encode(part).decode() for part in (salt, stored, server))
    return "SCRAM-SHA-256${}:{}${}:{}".format(_ITERATIONS, *texts)
