"""What things are and what follows from them: pure, no I/O, no clock."""
