"""How figures, names and reasons are put into words: what the command line and the screens share."""
