"""Pictures of the screens for the README, and how they are drawn."""
