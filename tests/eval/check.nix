# Runs one file of tests, and says what came of it in lines.
#
# A file is a function to `{ tests, refusals, counts }`. A test is `{ is, wanted }`. A refusal is `{ value, words, without }`: the value cannot be had, the
# message has the words, and nothing of what it must be without. A count is `{ value, words, times }`: so often are the words traced. These are
# evaluated in a process of their own, because Nix lets nobody look at a message from inside.
{
  # The file, by its name here without `.nix`.
  file,
  # A folder with nixpkgs; the stand-in where the tests need none.
  nixpkgs,
  # Which refusal or count to evaluate; without it, all tests.
  name ? null,
}:

let
  from = /. + nixpkgs;
  found = import (./. + "/${file}.nix") {
    nixpkgs = from;
    lib = import (from + "/lib");
    library = ../../nix/lib;
    standIn = ../nix/stand-in;
  };

  line =
    name:
    let
      test = found.tests.${name};
    in
    if test.is == test.wanted then
      "ok ${file}: ${name}\n"
    else
      "FAILED ${file}: ${name}: it is ${builtins.toJSON test.is}, and was to be ${builtins.toJSON test.wanted}\n";

  # Three lines each; none of them has a line break.
  refusals = builtins.concatMap (name: [
    name
    found.refusals.${name}.words
    (found.refusals.${name}.without or "")
  ]) (builtins.attrNames (found.refusals or { }));

  counts = builtins.concatMap (name: [
    name
    found.counts.${name}.words
    (toString found.counts.${name}.times)
  ]) (builtins.attrNames (found.counts or { }));

  lines = texts: join (map (text: text + "\n") texts);
  join = builtins.concatStringsSep "";
in
{
  tests = join (map line (builtins.attrNames (found.tests or { })));
  refusals = lines refusals;
  refusal = builtins.deepSeq found.refusals.${name}.value "";
  counts = lines counts;
  count = builtins.deepSeq found.counts.${name}.value "";
}
