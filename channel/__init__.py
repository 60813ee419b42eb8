"""Channel models: what happens to a frame between two radios."""
