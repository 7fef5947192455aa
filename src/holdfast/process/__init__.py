"""The engine that needs no Spark: tasks run in this process and read files themselves."""
