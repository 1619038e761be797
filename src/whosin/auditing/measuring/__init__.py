"""From answers about members and non-members to an audit: experiment, attacks, limits, people, groups, verdict."""
