"""The commands, each named after the method of Profile that it calls.

Results go to standard output, everything else to standard error. ``docs/cli.md`` describes them.
Imports are inside the functions, because ``show``, ``history`` and ``diff`` should answer
immediately and need neither Spark nor kernels.
"""
