"""What a program became, for people to look at: the page of `lucid.view`, and the command line."""
