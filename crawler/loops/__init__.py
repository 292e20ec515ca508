"""The loops: the only places that wait. They claim, fetch, ask the rules what follows, and commit once."""
