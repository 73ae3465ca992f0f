# What the units of a node are kept from. It is little: they make the machine what its configuration says, as root.
#
# Nothing that gives a unit its own view of the file system is among it (`ProtectSystem`, `PrivateTmp`, `ProtectHome` and
# their like): secrets are files of a tmpfs that the unit mounts, and nobody outside of such a view would see them. Nor is
# `NoNewPrivileges`, `RestrictSUIDSGID` or a filter of system calls: what is applied may be a file with any mode, and what is
# activated is a whole system.
{
  KeyringMode = "private";
  LockPersonality = true;
  RestrictRealtime = true;
  SystemCallArchitectures = "native";
}
