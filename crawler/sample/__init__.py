"""Samples for research: which URLs are drawn (``design``), and what they say of the rest (``estimates``). Pure."""
