{
  schema_version = 2;
  name = "plain";
  nodes = [
    {
      name = "web";
      type = "vm";
    }
  ];
}
