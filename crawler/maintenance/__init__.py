"""Takes content out of a store: pages that are to be forgotten, old versions, and the space of deleted rows."""
