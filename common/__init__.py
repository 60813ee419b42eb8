"""What every room may use and what uses none of them: the registry of plugins, the options they have, units."""
