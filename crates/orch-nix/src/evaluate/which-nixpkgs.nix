# Where the nixpkgs of a site is, as text: what is fetched for it is in the store afterwards.
{ site }: { path = toString (import ./nixpkgs.nix { inherit site; }); }
