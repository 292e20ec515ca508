"""The Remote Update Protocol (RUP, Internet-Draft of January 1998): a site tells robots what changed."""
