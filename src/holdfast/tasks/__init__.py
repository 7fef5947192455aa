"""What runs on a worker: Arrow batches and paths in, Arrow batches and arrays out. No Spark."""
