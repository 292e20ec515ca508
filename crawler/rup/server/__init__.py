"""The server's side of the Remote Update Protocol: store, document tree, HTTP, and the reports to send."""
