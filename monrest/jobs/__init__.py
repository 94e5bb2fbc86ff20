"""Background jobs: requests whose answer is kept until somebody fetches it."""
