"""The Deployment controller: from one template to the next, within surge and availability, and back again."""
