# Packages that nixpkgs calls otherwise than Debian does. A test looks each of them up.
{
  "bind9-dnsutils" = "dig";
  "ca-certificates" = "cacert";
  "dnsutils" = "dig";
  "g++" = "gcc";
  "gnupg2" = "gnupg";
  "iputils-ping" = "iputils";
  "net-tools" = "nettools";
  "netcat-openbsd" = "netcat";
  "nfs-common" = "nfs-utils";
  "openssh-client" = "openssh";
  "openssh-server" = "openssh";
  "postgresql-client" = "postgresql";
  "python3-pip" = "python3Packages.pip";
  "python3-venv" = "python3";
  "qemu-guest-agent" = "qemu_kvm.ga";
  "vim-nox" = "vim";
  "xz-utils" = "xz";
}
