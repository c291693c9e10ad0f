"""Plant a scenario in a practice machine, and record that the learner solved it.

A scenario is a fault that the learner repairs. The checks run inside the machine.
"""
