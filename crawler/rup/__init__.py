"""The Remote Update Protocol (Internet-Draft of January 1998): servers tell robots what changed. Both of its sides."""
