"""The endpoints about the instance itself."""
