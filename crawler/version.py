"""The version, where every part can read it."""

VERSION = "0.1.0"
