"""What a delay budget leaves of a lossy link: docs/adaptive.md.

    python -m experiments.adaptive [--residual 1e-4] [--plot docs/adaptive.png]

`bound.py` computes it, `__main__.py` prints the page's tables and draws its figure.
"""
