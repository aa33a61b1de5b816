"""What was judged before: kept on disk, and taken up where all is as it was."""
