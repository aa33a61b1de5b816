"""What all protocols rest upon: leaders, in-sync sets, controllers, messages."""
