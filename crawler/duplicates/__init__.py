"""Near-duplicates: pages whose main texts are nearly the same, in clusters (docs/duplicates.md)."""
