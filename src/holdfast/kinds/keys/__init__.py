"""Keys, and non-keys with them."""
