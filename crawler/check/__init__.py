"""Checks without network: what a robots.txt allows, and what an HTML page says of itself."""
