//! The files that are compared: every format, every rule, every kind of value.

use orch_secrets::sops::{Rule, Selection};

/// One file.
pub(crate) struct Cell {
    pub(crate) name: String,
    pub(crate) plain: Vec<u8>,
    pub(crate) options: Vec<&'static str>,
}

/// There is no option of this name: it stands for a line of a `.sops.yaml`.
pub(crate) const MAC_ONLY: &str = "--mac-only-encrypted";

impl Cell {
    /// The rule of the file, as our own type.
    pub(crate) fn selection(&self) -> Selection {
        let mut selection = Selection::default();
        let mut options = self.options.iter();
        while let Some(option) = options.next() {
            let mut value = || (*options.next().unwrap()).to_owned();
            match *option {
                MAC_ONLY => selection.mac_only_encrypted = true,
                "--unencrypted-suffix" => selection.rule = Some(Rule::UnencryptedSuffix(value())),
                "--encrypted-suffix" => selection.rule = Some(Rule::EncryptedSuffix(value())),
                "--unencrypted-regex" => selection.rule = Some(Rule::UnencryptedRegex(value())),
                "--encrypted-comment-regex" => selection.rule = Some(Rule::EncryptedCommentRegex(value())),
                "--unencrypted-comment-regex" => {
                    selection.rule = Some(Rule::UnencryptedCommentRegex(value()));
                }
                "--encrypted-regex" => selection.rule = Some(Rule::EncryptedRegex(value())),
                other => unreachable!("{other}"),
            }
        }
        selection
    }
}

/// The rules, each with what makes sops use it.
const RULES: [(&str, &[&str]); 8] = [
    ("default", &[]),
    ("unencrypted-suffix", &["--unencrypted-suffix", "_plain"]),
    ("encrypted-suffix", &["--encrypted-suffix", "_secret"]),
    ("unencrypted-regex", &["--unencrypted-regex", "^(pub|\\d+x)"]),
    ("encrypted-regex", &["--encrypted-regex", "^(data|list|n_secret)$"]),
    ("mac-only", &[MAC_ONLY]),
    ("mac-only-regex", &[MAC_ONLY, "--encrypted-regex", "data"]),
    ("nothing", &["--encrypted-suffix", "_no_key_ends_so"]),
];

const PLAIN_YAML: &str = "pub: open\ndata: {a: 1, b: [x, y, {c: true}]}\nlist: [1, 2.5, no]\nn_secret: 7\nq_plain: seen\n1x: 2\nz_unencrypted: clear\n";

const YAML: [(&str, &str); 26] = [
    ("empty-strings", "a: \"\"\nb: ''\nc_unencrypted: \"\"\nd: [\"\", x]\n"),
    ("unicode", "grüße: \"日本語 🎉\"\nk: \"\\u0001\\t\\\"\"\nmü_unencrypted: ß\n"),
    (
        "timestamps",
        "a: 2024-01-02\nb: 2024-01-02T03:04:05.120Z\nc: 2024-1-2 3:4:5\nd: 2024-01-02T03:04:05+02:00\ne: \"2024-01-02\"\n",
    ),
    (
        "timestamps-clear",
        "a_unencrypted: 2024-01-02\nb_unencrypted: 2024-01-02T03:04:05.120Z\nc_unencrypted: 2024-1-2 3:4:5\n",
    ),
    (
        "ints",
        "a: 9223372036854775807\nb: -9223372036854775808\nc: 0x7f\nd: 0o17\ne: 0777\nf: 1_000\ng: 0b11\n",
    ),
    (
        "ints-clear",
        "a_unencrypted: 9223372036854775807\nb_unencrypted: -5\nc_unencrypted: 0x7f\nd_unencrypted: 0o17\ne_unencrypted: 0777\nf_unencrypted: 1_000\n",
    ),
    ("floats", "a: 1.5\nb: 1e3\nc: 3.0\nd: -0.0\ne: 1e21\nf: 1.0e-9\ng: 99999999999999999999\nh: 09\n"),
    (
        "floats-clear",
        "a_unencrypted: 1.5\nb_unencrypted: 1e3\nc_unencrypted: 3.0\ne_unencrypted: 1e21\nf_unencrypted: 1.0e-9\n",
    ),
    (
        "odd-words",
        "a: yes\nb: No\nc: on\nd: ~\ne: null\nf: Null\ng: True\nh: y\ni: 12:30:45\nj: 1.2.3\nk: +-5\nl: 0x\nm: 1e400\nn: .5\n",
    ),
    (
        "odd-words-clear",
        "a_unencrypted: yes\nb_unencrypted: No\nd_unencrypted: ~\ng_unencrypted: True\ni_unencrypted: 12:30:45\nk_unencrypted: +-5\nl_unencrypted: 0x\nm_unencrypted: 1e400\nn_unencrypted: .5\no_unencrypted: 2024-13-01\n",
    ),
    ("nested-lists", "a: [[1, [2, [3]]], {b: [{c: d}]}, []]\ne: {}\nf: []\n"),
    ("comments-in-maps", "# head\na: 1 # line\n# between\nb:\n  # inner\n  c: 2\n  # foot\nd: 3\n# end\n"),
    (
        "comments-in-lists",
        "a:\n  # first\n  - 1\n  # second\n  - 2 # line\n  # third\n  - x: 1\n    # deep\n    y: 2\n  # last\nb: x\n",
    ),
    ("comments-clear", "# head\na_unencrypted:\n  # first\n  - 1\n  # second\n  - 2\n"),
    ("documents", "a: 1\nb: x\n---\nc: 2\n---\n# only this\nd: [1]\n"),
    ("documents-empty", "a: 1\n---\n---\nb: 2\n"),
    ("block-scalars", "a: |\n  one\n  two\nb: >-\n  fold\n  ed\nc: |+\n  keep\n\nd: |2\n    x\n"),
    ("quoted-keys", "\"a:b\": 1\n'c d': 2\n\"1\": three\n\"true\": x\n\"\": empty\n? long\n: v\n"),
    ("quoted-numbers", "a: \"1\"\nb: '2.5'\nc: \"true\"\nd: \"null\"\ne: !!str 5\nf: !!float 3\n"),
    ("aliases", "a: &x {k: v, n: 1}\nb: *x\nc: [*x, *x]\n"),
    ("merge-key", "base: &b {k: v}\nother:\n  <<: *b\n  z: 1\n"),
    ("deep", "a: {b: {c: {d: {e: {f: {g: {h: [[[[[x]]]]]}}}}}}}\n"),
    (
        "long",
        "a: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbb ccccccccccccccccccccc\nb_unencrypted: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb ccccccccccccc\n",
    ),
    (
        "text-clear",
        "a_unencrypted: \"line\\nbreak\"\nb_unencrypted: \" space \"\nc_unencrypted: \"# no\"\nd_unencrypted: '- x'\ne_unencrypted: \"ENC[x]\"\nf_unencrypted: \"tab\\tx\"\ng_unencrypted: \"null\"\n",
    ),
    ("values-like-sops", "a: \"ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]\"\nb: sops\nnested: {sops: 1}\n"),
    ("flow", "{a: 1, b: [x, \"y\"], c: {d: e}}\n"),
];

const JSON: [(&str, &str); 8] = [
    (
        "types",
        r#"{"a":"x","b":1,"c":1.5,"d":true,"e":null,"f":[],"g":{},"h":[1,"y",{"z":false}],"i_unencrypted":3}"#,
    ),
    ("numbers", r#"{"a":9007199254740993,"b":-1,"c":1e3,"d":1e21,"e":1e-9,"f":0.1,"g":-0,"h":123456789.5}"#),
    (
        "numbers-clear",
        r#"{"a_unencrypted":9007199254740993,"b_unencrypted":-1,"c_unencrypted":1e3,"d_unencrypted":1e21,"e_unencrypted":1e-9,"g_unencrypted":-0}"#,
    ),
    (
        "strings",
        r#"{"a":"","b":"é\n\t\"\\\/","c":"\u2028<>&","d_unencrypted":"\ud83d\ude00\u0007","e":"2024-01-02","":"k"}"#,
    ),
    ("huge-clear", r#"{"a_unencrypted":123456789012345678901234567890,"b_unencrypted":9223372036854775807}"#),
    ("deep", r#"{"a":{"b":{"c":[{"d":[[["x"]]]}]}}}"#),
    ("empty", r"{}"),
    ("half-surrogate", r#"{"a_unencrypted":"\ud800x","b":"\udc00"}"#),
];

const DOTENV: [(&str, &str); 5] = [
    ("plain", "A=1\nB=two words\n\nC=\nD=a=b=c\n"),
    ("comments", "# head\nA=1\n#B=2\n#\nC=3\n"),
    ("line-breaks", "A=one\\ntwo\nB=\"quoted\"\nC='x'\nD= spaces \n"),
    ("clear", "A_unencrypted=x\\ny\nB=secret\nexport C=1\n"),
    ("unicode", "ÄÖ=ü\nX=日本\n"),
];

const INI: [(&str, &str); 6] = [
    ("plain", "a = 1\nb = two\n[s]\nc = x\nd=\n[t]\ne = y z\n"),
    ("comments", "; head\na = 1\n# more\n[s]\n; of c\nc = x ; line\nd = y\n"),
    ("quotes", "[s]\na = \"x y\"\nb = 'z'\nc = `a;b`\nd = \"\"\"one\ntwo\"\"\"\ne = long \\\n  line\n"),
    ("clear", "[s]\na_unencrypted = x;y\nb = z\nc_unencrypted = \"q\"\nd_unencrypted = `# no`\n"),
    ("colons", "[a.b]\nk: v\nurl = http://x:1/?q=2\n"),
    ("no-default", "[only]\nk = v\n"),
];

/// Files in which comments say what is encrypted.
const BY_COMMENTS: [(&str, &str); 8] = [
    ("maps.yaml", "# sops:enc\na: 1\nb: 2\n# sops:clear\nc:\n    d: 3\n    # other\n    e: 4\nf: 5\n"),
    (
        "deep.yaml",
        "a:\n    # sops:enc\n    b: {c: x}\n    # sops:clear\n    d: [1, 2]\n    e: 3\nf: 4\n# sops:enc\n",
    ),
    ("lines.yaml", "a: 1 # sops:enc\nb: 2 # sops:clear\nc: 3\nd: {e: 4}\n"),
    (
        "lists.yaml",
        "a:\n    # sops:clear\n    - 1\n    - 2\n    # sops:enc\n    - x: 1\n      y: 2\n    - 4\nb: z\n",
    ),
    ("many.yaml", "# one\n# sops:enc\n# three\na: 1\n\n# sops:clear\n\nb: 2\n"),
    ("documents.yaml", "a: 1\n---\n# sops:enc\nb: 2\n---\n# sops:clear\nc: 3\n"),
    ("none.json", "{\"a\": 1, \"b\": [\"x\"]}"),
    ("lines.env", "# sops:enc\nA=1\nB=2\n# sops:clear\nC=3\nD=4\n"),
];

/// All of them.
pub(crate) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |name: String, plain: &[u8], options: &[&'static str]| {
        cells.push(Cell { name, plain: plain.to_vec(), options: options.to_vec() });
    };
    for (rule, options) in RULES {
        add(format!("rule-{rule}.yaml"), PLAIN_YAML.as_bytes(), options);
        let json = r#"{"pub":"open","data":{"a":1,"b":["x",{"c":true}]},"list":[1,2.5],"n_secret":7,"q_plain":"seen","1x":2}"#;
        add(format!("rule-{rule}.json"), json.as_bytes(), options);
        add(format!("rule-{rule}.env"), b"pub=open\ndata=1\nn_secret=7\nq_plain=seen\n", options);
        add(
            format!("rule-{rule}.ini"),
            b"pub = open\n[data]\na = 1\n[s]\nn_secret = 7\nq_plain = seen\n",
            options,
        );
        add(format!("rule-{rule}.bin"), b"\x00\xff binary \n", options);
    }
    for (name, plain) in YAML {
        add(format!("{name}.yaml"), plain.as_bytes(), &[]);
        add(format!("{name}-mac-only.yaml"), plain.as_bytes(), &[MAC_ONLY]);
    }
    for (name, plain) in BY_COMMENTS {
        add(format!("by-comments-1-{name}"), plain.as_bytes(), &["--encrypted-comment-regex", "sops:enc"]);
        add(
            format!("by-comments-2-{name}"),
            plain.as_bytes(),
            &["--unencrypted-comment-regex", "sops:clear"],
        );
    }
    let others: [(&str, &[(&str, &str)]); 3] = [("json", &JSON), ("env", &DOTENV), ("ini", &INI)];
    for (ending, files) in others {
        for (name, plain) in files {
            add(format!("{name}.{ending}"), plain.as_bytes(), &[]);
        }
    }
    add(String::from("empty.key"), b"", &[]);
    add(String::from("text.pem"), b"-----BEGIN X-----\nabc\n-----END X-----\n", &[]);
    add(String::from("all-bytes"), &(0..=255).collect::<Vec<u8>>(), &[]);
    cells
}
