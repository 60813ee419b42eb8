"""Channel models: the path of a frame between two radios."""
