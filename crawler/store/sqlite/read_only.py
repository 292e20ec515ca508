"""A connection to a SQLite file that only reads it, and statements of the user on it."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from crawler.store.statements import UserSql

#: Pragmas that take an argument and change nothing.
_PRAGMAS_THAT_READ = {
    *("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list"),
    *("foreign_key_check", "integrity_check", "quick_check"),
}
#: Pragmas that do something, without an argument.
_PRAGMAS_THAT_ACT = {"wal_checkpoint", "optimize", "incremental_vacuum", "shrink_memory"}
#: Actions of a statement of the user, beside the reading of columns, the calling of functions, and pragmas.
_ACTIONS_THAT_READ = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE}
#: Functions that load code into the process.
_FUNCTIONS_THAT_LOAD = {"load_extension", "fts3_tokenizer"}
#: Table-valued functions that read their arguments or the schema.
_TABLE_FUNCTIONS = ("json_each", "json_tree", "pragma_")
#: The beginning of a statement that only reads. SQLite refuses to change a view before it asks the authorizer.
BEGINS_AS_QUERY = re.compile(
    r"(?>\s|--[^\n]*|/\*.*?\*/)*+(?:select|with|values|explain|pragma)\b", re.IGNORECASE | re.DOTALL
)


class ReadOnlyConnection(sqlite3.Connection):
    """A connection to a file that was opened to be read.

    SQLite asks :meth:`_authorize` for each action of a statement when it compiles the statement. No statement may open
    another file or change a pragma. A :class:`UserSql` may only read views: it may read a column of a table if a view,
    or a common table expression with the name of that view, reads it.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._views: set[str] | None = None
        self._columns: set[tuple[str | None, str | None, str | None]] = set()  # (view, table, column) that views read
        self._is_learning = self._is_confined = False
        self.set_authorizer(self._authorize)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Compile and execute a statement. Raises :class:`sqlite3.DatabaseError` for one that is not authorized."""
        if not isinstance(sql, UserSql):
            return super().execute(sql, parameters)
        if self._views is None:
            self._views = self._learn_views()
        self._is_confined = True
        try:
            return super().execute(sql, parameters)
        finally:
            self._is_confined = False

    def _learn_views(self) -> set[str]:
        """The names of the views. Notes the columns of tables that the views read."""
        views = {str(name) for (name,) in super().execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
        self._is_learning = True
        try:
            for view in views:
                super().execute(f'EXPLAIN SELECT * FROM "{view}"').close()
        finally:
            self._is_learning = False
        return views

    def _authorize(
        self, action: int, name: str | None, value: str | None, database: str | None, within: str | None
    ) -> int:
        """``within`` is the view, or the common table expression of a view, that reads the column ``name.value``."""
        if self._is_learning and action == sqlite3.SQLITE_READ:
            self._columns.add((within, name, value))
        if action == sqlite3.SQLITE_PRAGMA:
            allowed = name not in _PRAGMAS_THAT_ACT if value is None else name in _PRAGMAS_THAT_READ
        elif self._is_confined:
            allowed = self._may_user(action, name, value, within)
        else:
            allowed = action not in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def _may_user(self, action: int, name: str | None, value: str | None, within: str | None) -> bool:
        """Whether a statement of the user may do this."""
        if action == sqlite3.SQLITE_FUNCTION:
            return value not in _FUNCTIONS_THAT_LOAD
        if name == "sqlite_master":  # declares a table-valued function; SQLite lets no statement write to this table
            return action == sqlite3.SQLITE_UPDATE or value == "ROWID"
        if action != sqlite3.SQLITE_READ:
            return action in _ACTIONS_THAT_READ
        assert self._views is not None
        if name in self._views or (name or "").startswith(_TABLE_FUNCTIONS):
            return True
        return not value or (within, name, value) in self._columns  # without a column, SQLite only counts rows
