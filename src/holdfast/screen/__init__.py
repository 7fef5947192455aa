"""What people read: lines, tables, values and numbers. Knows no constraints."""
