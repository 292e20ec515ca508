"""What a store, a robots.txt file or a page says, for people: ``status``, ``why``, ``robots check``, ``page check``.

Only reads.
"""
