"""The only folder that imports pyspark: sessions, sources, and placing tasks on workers."""
