{ config, ... }: { standIn.files."etc/motd" = config.orch.node.name; }
