"""Settings: one table of keys, from which TOML, the command line and Python are read.

``settings`` has the fields by section, with the ``values`` that only they have, and ``keys`` the table of them.
``loading`` reads a file or a mapping, ``stored`` what a store remembers, ``seeds`` the lists of seeds. ``stores`` opens
the store that settings name, ``crawl_scope`` makes the scope of a crawl, and ``changes`` applies settings that changed.
``reference`` writes settings as TOML, ``log_records`` has the choices of the log.
"""
