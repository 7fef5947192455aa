"""Values that everything else speaks of: constraints, changes, options, errors."""
