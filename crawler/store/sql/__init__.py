"""The common part of the SQLite and PostgreSQL stores: it names statements, and each dialect has their SQL."""
