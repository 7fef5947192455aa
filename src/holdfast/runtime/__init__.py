"""What places tasks, and what moves, caches, maps and checks their files."""
