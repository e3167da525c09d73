"""What people and programs get to see: data, messages, help."""
