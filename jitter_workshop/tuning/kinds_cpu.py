"""Kinds of settings that are no plain file."""

from __future__ import annotations

from jitter_workshop.tuning.kinds import Kind

KINDS: tuple[Kind, ...] = ()
