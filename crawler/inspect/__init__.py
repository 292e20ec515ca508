"""Commands that inspect: ``status``, ``why``, ``robots check``, ``page check``, and ``store copy``."""
