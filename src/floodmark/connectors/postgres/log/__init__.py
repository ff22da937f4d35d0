"""The log: capturing it, finding the changes in it, and making events of them."""
