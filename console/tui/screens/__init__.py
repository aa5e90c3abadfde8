"""What fills the terminal: a mode each."""
