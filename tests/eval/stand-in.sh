# The stand-in for NixOS itself: its systems are built, and switched to below a root of their own. Read by `run`.

stand_in() { # NAME MODULE → builds, and prints the path
  printf '%s' "{\"version\":1,\"site\":\"$work/site\",\"nodes\":{\"m.$1@h\":{\"name\":\"$1\",\"kind\":\"host\",\"modules\":[\"$1.nix\"],\"platform\":null,\"tags\":[],\"config\":{}}}}" > "$work/input.json"
  mkdir -p "$work/site"
  printf '%s' "$2" > "$work/site/$1.nix"
  nix eval --impure --raw --file ../../nix/lib/evaluate.nix --argstr input "$work/input.json" --argstr nixpkgs "$stand_in" "\"m.$1@h\".drvPath" > "$work/drv"
  nix-store --realise "$(cat "$work/drv")" 2> "$work/message"
}

promise() { # WORDS COMMAND…
  local words=$1
  shift
  if "$@"; then tell ok "stand-in: $words"; else tell FAILED "stand-in: $words"; fi
}

stand_in_tests() {
  local root=$work/root good bad shy status
  mkdir -p "$root/run" "$root/nix/var"
  export STAND_IN_ROOT=$root

  if ! good=$(stand_in good '{ standIn = { activate = "echo activated >> \"$STAND_IN_ROOT/log\""; files."etc/motd" = "a \"quote\", a $dollar and a \\\\ stay"; kernel = "6.2"; }; }'); then
    tell FAILED "stand-in: a system can be built: $(tail -n 5 "$work/message")"
    return
  fi
  promise "a file holds what the module says, to the letter" \
    test "$(cat "$good/etc/motd")" = 'a "quote", a $dollar and a \\ stay'
  promise "a kernel is a path of its own, so that another one shows" test "$(readlink "$good/kernel" | grep -c -- -linux-6.2)" = 1

  "$good/bin/switch-to-configuration" test
  promise "a test runs the activation and makes the system the running one" \
    test "$(readlink "$root/run/current-system") $(cat "$root/log")" = "$good activated"
  promise "a test tells the boot loader nothing" test ! -e "$root/nix/var/stand-in-boot"
  "$good/bin/switch-to-configuration" boot
  promise "boot tells the boot loader and activates nothing" \
    test "$(cat "$root/nix/var/stand-in-boot") $(wc -l < "$root/log")" = "$good 1"

  bad=$(stand_in bad '{ standIn.activate = "exit 7"; }')
  status=0
  "$bad/bin/switch-to-configuration" test || status=$?
  promise "an activation that fails says so by its code" test "$status" = 7
  promise "and has the system run all the same, as NixOS does" test "$(readlink "$root/run/current-system")" = "$bad"

  shy=$(stand_in shy '{ standIn.check = "exit 100"; standIn.activate = "echo never >> \"$STAND_IN_ROOT/log\""; }')
  status=0
  "$shy/bin/switch-to-configuration" switch || status=$?
  promise "one that can only be booted changes nothing" \
    test "$status $(readlink "$root/run/current-system") $(cat "$root/nix/var/stand-in-boot")" = "100 $bad $good"
  unset STAND_IN_ROOT
}

# A nixpkgs that is pinned: the stand-in as an archive, by the address and the hash that a flake.lock has.
lock() { # HASH
  mkdir -p "$work/pinned"
  printf '{"nodes":{"root":{"inputs":{"nixpkgs":"nixpkgs"}},"nixpkgs":{"locked":{"type":"tarball","url":"file://%s","narHash":"%s"}}},"root":"root","version":7}' \
    "$work/nixpkgs.tar.gz" "$1" > "$work/pinned/flake.lock"
}

pinned() {
  nix-instantiate --eval --strict --json ../../nix/lib/nixpkgs.nix --argstr site "$work/pinned" 2> "$work/message"
}

lock_tests() {
  local hash
  hash=$(nix hash path --sri "$stand_in")
  tar -czf "$work/nixpkgs.tar.gz" -C "$stand_in/.." stand-in
  lock "$hash"
  promise "a nixpkgs that flake.lock pins is fetched" test -e "$(pinned | tr -d '"')/lib/default.nix"
  lock sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
  promise "and refused where it is not what was pinned" test -z "$(pinned || true)"
  promise "in words that say so" says "hash mismatch"
}

stand_in_tests
lock_tests
