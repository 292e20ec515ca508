"""Settings: one table of keys, from which TOML, the command line and Python are read."""
