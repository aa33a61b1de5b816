"""What tests know of deleted topics, preferred leaders and brokers that stop in good order."""
