"""What people read: knows no constraints, so that every kind of them can show itself.

page.py   lines and tables that are never wider than the screen
text.py   values and numbers as people read them
"""
