"""What the SQLite and the PostgreSQL store share: the statements are named, the dialects have them in SQL."""
