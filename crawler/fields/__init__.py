"""A setting stands on a field of a dataclass: with its key, its help, the kind of its values, and what it decides."""
