"""Background jobs: requests whose answer is kept until it is fetched."""
