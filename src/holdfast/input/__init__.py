"""Sources of rows: files, tables, DataFrames; and reading them into segments."""
