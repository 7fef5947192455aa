"""The order of things: profile tables, apply a batch, verify, ask."""
