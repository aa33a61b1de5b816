"""The audit on Spark, the tables that it leaves, and Spark itself."""
