"""The commands `crawler store`: take content out of a store, copy it, merge parts, or let a role read it."""
