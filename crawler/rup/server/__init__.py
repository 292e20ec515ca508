"""The server side of the Remote Update Protocol: the store, the document tree, HTTP, and the reports to send."""
