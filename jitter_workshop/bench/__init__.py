"""Run the native workloads in a child process of their own, and collect what they measured."""
