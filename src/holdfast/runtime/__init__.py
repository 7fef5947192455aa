"""What places tasks, and what moves, caches, maps and seals their files."""
