"""Where rows come from, and how they become segments."""
