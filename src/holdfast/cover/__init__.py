"""Evidence to minimal sets of atoms. Knows no columns, no rows and no Spark."""
