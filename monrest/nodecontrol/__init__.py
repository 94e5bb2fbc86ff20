"""Node-control: facts about the hosts of sites, and what is done there."""
