"""Parts of screens, drawn line by line."""
