"""Reports of campaigns: tables, figures, comparisons, bundles that others can check."""
