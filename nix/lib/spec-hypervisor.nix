# The software with which the node hosts others. NixOS has no Proxmox VE of its own, and so a module must bring it.
role:
{ lib, options, ... }:

let
  hypervisor = role.hypervisor or null;
in
if hypervisor == null then
  { }
else if hypervisor == "proxmox" && options.services ? proxmox-ve then
  { services.proxmox-ve.enable = true; }
else
  throw "hypervisor `${hypervisor}` is not part of NixOS: have a module with the option `services.proxmox-ve` (proxmox-nixos) among `nixos.modules`"
