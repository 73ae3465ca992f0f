# A host as options: a place for nodes. The provider decides which keys there are.
provider:
{ lib, ... }:

let
  inherit (lib) types;
  orch = import ./types.nix { inherit lib; };
  inherit (import ./declare.nix { inherit lib; }) maybe with' needed;

  defaults = {
    domain = maybe orch.domain "The domain of nodes.";
    timezone = maybe orch.timeZone "The time zone of nodes.";
    dns_servers = with' [ ] (types.listOf orch.address) "Name servers for nodes with a fixed address.";
    gateway = maybe orch.address "The gateway for nodes with a fixed address.";
    bridge = maybe orch.unit "The bridge that nodes are attached to.";
    node_user = maybe orch.userName "The account that orch uses on a node.";
    server_url = maybe orch.url "Where nodes that pull find the spec server.";
  };

  reached.ssh = maybe (types.submodule {
    options = {
      user = with' "root" orch.userName "The account.";
      port = with' 22 orch.port "The port.";
      address = maybe types.str "The address. Default: the host's name.";
      host_keys =
        with' [ ] (types.listOf orch.publicKey)
          "The host's public keys; nothing else is trusted.";
      identity = maybe types.str "The private key to log in with, as a path; relative to the site.";
      jump = maybe orch.hostName "The host through which it is reached: a name under hosts/.";
    };
  }) "How the host itself is reached.";

  imaged.images =
    with' { } (types.attrsOf types.str)
      "Images by the name that manifests use; `*` stands for every other name.";

  pinned = {
    tls_fingerprint = maybe orch.fingerprint "The SHA-256 fingerprint of its certificate.";
    ca_file = maybe types.str "A file with the certificate authority that signed its certificate.";
    node_program = maybe types.str "Where images have the `orch-node` program. Default: it is brought to each node.";
  };

  range = types.addCheck (types.listOf orch.vmid) (
    bounds: builtins.length bounds == 2 && builtins.head bounds <= builtins.elemAt bounds 1
  );

  providers = {
    local = reached // imaged;
    proxmox =
      reached
      // imaged
      // pinned
      // {
        api_endpoint = needed orch.url "The address of its API, such as `https://father.core:8006`.";
        api_token = needed orch.secretRef "The API token, by mention of a secret.";
        node = maybe types.str "The name of the Proxmox node. Default: the host's name.";
        datastore = needed types.str "Where disks go.";
        vlan = maybe (types.ints.between 1 4094) "The VLAN of nodes.";
        vmid_range = with' [
          10000
          19999
        ] range "The range of VMIDs that are derived: two numbers, the smaller one first.";
        pool = maybe types.str "The pool that machines are put into.";
        snippets = maybe types.str "The datastore that takes snippets.";
      };
    hetzner =
      reached
      // imaged
      // pinned
      // {
        token = needed orch.secretRef "The API token, by mention of a secret.";
        location = needed types.str "The location of servers.";
        fallback_locations =
          with' [ ] (types.listOf types.str)
            "Locations to try, in this order, where that one has none left.";
        server_types = with' { } (types.attrsOf types.str) "Server types by preset.";
        networks = with' [ ] (types.listOf orch.cidr) "Private networks that servers join.";
        firewall = maybe orch.unit "The firewall that servers stand behind.";
        spread =
          with' false types.bool
            "Whether the servers of a manifest are kept on different physical machines, ten of them at most.";
        api_endpoint = maybe orch.url "The address of the API, where it is not Hetzner's own.";
      };
    k3s.kubeconfig = needed orch.secretRef "The kubeconfig, by mention of a secret.";
  };
in
{
  options = {
    provider = needed (types.enum (builtins.attrNames providers)) "Where nodes can be placed.";
  }
  // defaults
  // providers.${provider} or { };
}
