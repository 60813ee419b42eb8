"""Channel models: the path of a frame between two radios."""

import common  # noqa: F401 (finds the compiled cores)
