"""What the instance says about itself."""
