"""Values that all other rooms use: constraints, grammar, changes, options, commits, errors."""
