"""Run ``jitter-workshop`` as ``python -m jitter_workshop``."""

from jitter_workshop.cli import run

if __name__ == "__main__":
    run()
