"""What is particular to one protocol in the controller, a file each."""
