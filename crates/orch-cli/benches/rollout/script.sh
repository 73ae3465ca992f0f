#!/bin/sh
# The least that deploys: evaluate, build, and on every node at once, over one connection to each: compare, copy, switch. It watches
# nothing, takes nothing back, locks nothing, reads nothing afterwards. Arguments: FLEET.nix NIXPKGS MODULE SSH_CONFIG SOCKETS NODE...
set -eu
fleet=$1 nixpkgs=$2 module=$3 config=$4 sockets=$5
shift 5
options="-F $config -S $sockets/%C -o ControlMaster=auto -o ControlPersist=60"

# Words are split on purpose: none of these paths has a space.
there() { node=$1; shift; ssh $options "$node" "$@"; }

deploy() {
    [ "$(there "$1" readlink -f /run/current-system)" != "$2" ] || return 0
    NIX_SSHOPTS=$options nix-copy-closure --to "$1" "$2" 2> /dev/null
    there "$1" "nix-env -p /nix/var/nix/profiles/system --set $2 && $2/bin/switch-to-configuration switch" > /dev/null
}

systems=$(nix-build --no-out-link "$fleet" --argstr nixpkgs "$nixpkgs" --argstr module "$module" --argstr nodes "$*" 2> /dev/null)
pids=
for system in $systems; do
    deploy "$1" "$system" & pids="$pids $!"
    shift
done
for pid in $pids; do wait "$pid"; done
