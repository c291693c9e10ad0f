"""Run ``jitter-workshop`` as ``python -m jitter_workshop``."""

from jitter_workshop.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
