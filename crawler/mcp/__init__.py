"""Lets a program with a language model read a store, by the Model Context Protocol (docs/mcp.md).

``tools`` answers from an open store, ``answers`` bounds each answer and marks what others wrote in it, and ``server``
speaks the protocol. Nothing here fetches or writes.
"""
