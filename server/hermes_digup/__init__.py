"""hermes-digup: an agent finds and reads the files that DigUp has indexed on its user's Mac."""
