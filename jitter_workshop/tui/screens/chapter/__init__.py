"""Show a chapter's steps."""
