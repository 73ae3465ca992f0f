# Services that NixOS switches by an option of another name than the unit's. A test looks each of them up.
{
  "chronyd" = [
    "services"
    "chrony"
  ];
  "docker" = [
    "virtualisation"
    "docker"
  ];
  "libvirtd" = [
    "virtualisation"
    "libvirtd"
  ];
  "prometheus-node-exporter" = [
    "services"
    "prometheus"
    "exporters"
    "node"
  ];
  "qemu-guest-agent" = [
    "services"
    "qemuGuest"
  ];
  "ssh" = [
    "services"
    "openssh"
  ];
  "sshd" = [
    "services"
    "openssh"
  ];
  "systemd-networkd" = [
    "systemd"
    "network"
  ];
  "systemd-resolved" = [
    "services"
    "resolved"
  ];
  "systemd-timesyncd" = [
    "services"
    "timesyncd"
  ];
  "tailscaled" = [
    "services"
    "tailscale"
  ];
}
