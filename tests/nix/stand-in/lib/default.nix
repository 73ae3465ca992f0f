# A `lib` for tests that have no nixpkgs: just what orch's library calls before the module system does its part.
rec {
  id = x: x;
  mkOption = id;
  mkDefault = id;
  mkForce = id;
  mkIf = condition: content: {
    _type = "if";
    inherit condition content;
  };
  mkMerge = contents: {
    _type = "merge";
    inherit contents;
  };
  literalExpression = text: {
    _type = "literalExpression";
    inherit text;
  };
  types = { };
}
