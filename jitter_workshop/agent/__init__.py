"""Change the host as root.

The agent takes the ids of tunables as JSON lines, makes the plan itself, records the changes in a journal, writes them,
and restores them later.
"""
