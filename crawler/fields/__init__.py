"""A setting stands on a field of a dataclass: with its key, its help, the kind of its values, and what it decides.

``kinds`` reads and writes the values, ``declaration`` declares the fields; :mod:`crawler.settings.keys` collects them.
"""
