"""What a step can do."""
