"""Evidence to minimal constraints: sets of atoms only, never rows."""
