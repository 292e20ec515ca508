"""Lets a program with a language model read a store, by the Model Context Protocol (docs/mcp.md).

``tools`` answers from an open store, bounds each answer and marks what others wrote in it; ``server`` speaks the
protocol. Nothing here fetches or writes.
"""
