"""What runs on a worker: paths and Arrow batches in, Arrow batches and arrays out. No Spark."""
