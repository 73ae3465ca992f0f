//! What a drawing of a manifest promises, in each language that it is drawn in.

use std::collections::BTreeSet;
use std::fmt::Write;

use expect_test::{Expect, expect};
use orch_model::{EdgeKind, Graph, HostName, ManifestName, Scope, Sources, parse};

const SITE: [(&str, &str); 6] = [
    ("hosts/father.yaml", "provider: local\n"),
    ("hosts/cloud.yaml", "provider: local\n"),
    ("specs/base.yaml", "schema_version: 1\n"),
    ("specs/pve.yaml", "schema_version: 1\nplatform: { hypervisor: proxmox }\n"),
    ("presets/vm-small.yaml", "cores: 1\nmemory: 1024\ndisk: 10\n"),
    ("postures/dev.yaml", "sudo: { nopasswd: true }\n"),
];

const NESTED: &str = "
description: A machine inside a machine.
pattern: tiered
nodes:
  - { name: inner-pve, type: pve, spec: pve, image: debian-13-pve }
  - { name: test-vm, type: vm, spec: base, preset: vm-small, image: debian-12, parent: inner-pve }
";

const EDGE: &str = "
description: A hub, and sites that wait for it.
pattern: hub-spoke
nodes:
  - { name: hub, type: vm, spec: base, preset: vm-small, image: debian-13 }
  - { name: site-1, type: ct, template: debian-12, depends_on: [hub], peers: [site-2] }
  - { name: site-2, type: vm, spec: base, image: debian-13, depends_on: [hub], peers: [site-1], host: cloud, execution: { mode: pull } }
";

const COUNTED: &str = "
pattern: tiered
nodes:
  - { name: rack, type: pve, count: 2, image: debian-13 }
  - { name: worker, type: vm, count: 3, spec: base, image: debian-13, parent: rack-2, peers: [worker] }
  - { name: web, type: vm, image: debian-13, depends_on: [worker-1, worker-3, rack] }
";

/// The graph of a manifest, of which the lines after `schema_version` and `name` are given.
fn graph_on(rest: &str, host: Option<&str>) -> Graph {
    let text = format!("schema_version: 2\nname: m{rest}");
    let sources = Sources::from_texts(SITE.into_iter().chain([("manifests/m.yaml", text.as_str())]));
    let catalog = parse(&sources, Scope::Site).expect("the site is sound");
    let host: Option<HostName> = host.map(|host| host.parse().expect("it is a host name"));
    let name: ManifestName = "m".parse().expect("it is a manifest name");
    catalog.graph(&name, host.as_ref()).expect("the manifest was read")
}

fn graph(rest: &str) -> Graph {
    graph_on(rest, None)
}

fn check(drawn: &str, expected: &Expect) {
    expected.assert_eq(drawn);
}

#[test]
fn a_nested_manifest_is_drawn_for_graphviz_with_a_solid_line_from_parent_to_child() {
    check(
        &graph_on(NESTED, Some("father")).to_dot(),
        &expect![[r##"
        digraph "m" {
          graph [rankdir=TB, labelloc=t, fontname="sans-serif", label="m\nA machine inside a machine."];
          node [shape=box, style="rounded,filled", fillcolor="#f8fafc", color="#94a3b8", fontname="sans-serif"];
          edge [color="#475569"];
          "inner-pve" [label="inner-pve\ntype pve\nspec pve\nimage debian-13-pve\nmode push\nhost father"];
          "test-vm" [label="test-vm\ntype vm\nspec base\npreset vm-small\nimage debian-12\nmode push\nhost father"];
          "inner-pve" -> "test-vm" [style=solid];
        }
    "##]],
    );
}

#[test]
fn a_hub_is_drawn_for_graphviz_with_dashed_dependencies_and_peers_once_and_without_heads() {
    check(
        &graph(EDGE).to_dot(),
        &expect![[r##"
        digraph "m" {
          graph [rankdir=TB, labelloc=t, fontname="sans-serif", label="m\nA hub, and sites that wait for it."];
          node [shape=box, style="rounded,filled", fillcolor="#f8fafc", color="#94a3b8", fontname="sans-serif"];
          edge [color="#475569"];
          "hub" [label="hub\ntype vm\nspec base\npreset vm-small\nimage debian-13\nmode push"];
          "site-1" [label="site-1\ntype ct\ntemplate debian-12"];
          "site-2" [label="site-2\ntype vm\nspec base\nimage debian-13\nmode pull\nhost cloud"];
          "hub" -> "site-1" [style=dashed, color="#b45309"];
          "site-1" -> "site-2" [dir=none, constraint=false, color="#0e7490"];
          "hub" -> "site-2" [style=dashed, color="#b45309"];
        }
    "##]],
    );
}

#[test]
fn a_nested_manifest_is_drawn_as_a_mermaid_flowchart() {
    check(
        &graph_on(NESTED, Some("father")).to_mermaid(),
        &expect![[r#"
        ---
        title: "m"
        ---
        flowchart TD
          accTitle: m
          accDescr: A machine inside a machine.
          n_inner_pve["<b>inner-pve</b><br/>type pve<br/>spec pve<br/>image debian-13-pve<br/>mode push<br/>host father"]
          n_test_vm["<b>test-vm</b><br/>type vm<br/>spec base<br/>preset vm-small<br/>image debian-12<br/>mode push<br/>host father"]
          n_inner_pve --> n_test_vm
    "#]],
    );
}

#[test]
fn a_hub_is_drawn_as_a_mermaid_flowchart() {
    check(
        &graph(EDGE).to_mermaid(),
        &expect![[r#"
        ---
        title: "m"
        ---
        flowchart TD
          accTitle: m
          accDescr: A hub, and sites that wait for it.
          n_hub["<b>hub</b><br/>type vm<br/>spec base<br/>preset vm-small<br/>image debian-13<br/>mode push"]
          n_site_1["<b>site-1</b><br/>type ct<br/>template debian-12"]
          n_site_2["<b>site-2</b><br/>type vm<br/>spec base<br/>image debian-13<br/>mode pull<br/>host cloud"]
          n_hub -.-> n_site_1
          n_site_1 --- n_site_2
          n_hub -.-> n_site_2
    "#]],
    );
}

#[test]
fn a_count_is_one_box_and_a_reference_to_some_of_its_nodes_is_told_in_the_box_that_refers() {
    check(
        &graph(COUNTED).to_mermaid(),
        &expect![[r#"
        ---
        title: "m"
        ---
        flowchart TD
          accTitle: m
          n_rack["<b>rack-1 … rack-2</b> ×2<br/>type pve<br/>image debian-13"]
          n_worker["<b>worker-1 … worker-3</b> ×3<br/>type vm<br/>spec base<br/>image debian-13<br/>mode push<br/>parent rack-2"]
          n_web["<b>web</b><br/>type vm<br/>image debian-13<br/>depends_on worker-1, worker-3"]
          n_rack --> n_worker
          n_worker --- n_worker
          n_worker -.-> n_web
          n_rack -.-> n_web
    "#]],
    );
}

#[test]
fn a_graph_is_data_in_file_order() {
    let json = serde_json::to_string_pretty(&graph(COUNTED).edges).unwrap();
    check(
        &json,
        &expect![[r#"
        [
          {
            "from": "rack",
            "to": "worker",
            "kind": "parent",
            "members": [
              "rack-2"
            ]
          },
          {
            "from": "worker",
            "to": "worker",
            "kind": "peer"
          },
          {
            "from": "worker",
            "to": "web",
            "kind": "depends_on",
            "members": [
              "worker-1",
              "worker-3"
            ]
          },
          {
            "from": "rack",
            "to": "web",
            "kind": "depends_on"
          }
        ]"#]],
    );
}

#[test]
fn a_node_lives_where_its_parent_does_and_without_any_host_no_place_is_shown() {
    let hosts = |graph: &Graph| {
        let host = |node: &orch_model::GraphNode| node.host.as_ref().map(ToString::to_string);
        graph.nodes.iter().map(host).collect::<Vec<_>>()
    };
    assert_eq!(hosts(&graph(NESTED)), [None, None]);
    assert_eq!(hosts(&graph_on(NESTED, Some("father"))), [Some("father".into()), Some("father".into())]);
    assert_eq!(hosts(&graph(EDGE)), [None, None, Some("cloud".into())]);
    assert!(!graph(NESTED).to_svg().contains(">host<"));
    assert!(graph_on(NESTED, Some("father")).to_svg().contains(">host<"));
}

#[test]
fn a_manifest_that_was_not_read_has_no_graph() {
    let sources = Sources::from_texts(SITE);
    let catalog = parse(&sources, Scope::Site).unwrap();
    assert!(catalog.graph(&"missing".parse().unwrap(), None).is_none());
}

#[test]
fn the_same_manifest_is_drawn_with_the_same_bytes() {
    for text in [NESTED, EDGE, COUNTED] {
        let (one, other) = (graph(text), graph(text));
        assert_eq!(one.to_svg(), other.to_svg());
        assert_eq!(one.to_dot(), other.to_dot());
        assert_eq!(one.to_mermaid(), other.to_mermaid());
    }
}

#[test]
fn a_picture_is_well_formed_and_has_every_node_and_every_edge_once() {
    for text in [NESTED, EDGE, COUNTED] {
        let graph = graph(text);
        let svg = graph.to_svg();
        let elements = elements(&svg);
        let with_class = |class: &str| {
            let is_it = |element: &&Element| element.classes().any(|found| found == class);
            elements.iter().filter(is_it).count()
        };
        assert_eq!(with_class("node"), graph.nodes.len());
        assert_eq!(with_class("edge"), graph.edges.len());
        for node in &graph.nodes {
            assert_eq!(svg.matches(&format!("<title>{}</title>", node.name)).count(), 1);
        }
    }
}

#[test]
fn a_picture_explains_the_kinds_of_lines_that_it_has_and_no_others() {
    let has = |graph: &Graph, text: &str| graph.to_svg().contains(&format!(">{text}</text>"));
    for (text, kind) in [
        ("parent to child", EdgeKind::Parent),
        ("dependency to dependent", EdgeKind::DependsOn),
        ("peers", EdgeKind::Peer),
    ] {
        for manifest in [NESTED, EDGE, COUNTED] {
            let graph = graph(manifest);
            let occurs = graph.edges.iter().any(|edge| edge.kind == kind);
            assert_eq!(has(&graph, text), occurs, "{text} {manifest}");
        }
    }
}

#[test]
fn a_picture_stands_alone_and_knows_light_and_dark() {
    let svg = graph(EDGE).to_svg();
    assert!(svg.contains("prefers-color-scheme: dark"));
    let urls: BTreeSet<&str> = svg.match_indices("http").map(|(at, _)| &svg[at..at + 26]).collect();
    assert_eq!(urls, BTreeSet::from(["http://www.w3.org/2000/svg"]));
    for element in elements(&svg) {
        assert!(!["script", "image", "use", "foreignObject", "a"].contains(&element.name.as_str()));
        let names = element.attributes.split("=\"").filter_map(|part| part.rsplit(['"', ' ']).next());
        for name in names.filter(|name| !name.is_empty()) {
            assert!(!name.starts_with("on") && !name.contains("href"), "{name}");
        }
    }
    let style = svg.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).unwrap();
    assert!(!style.contains("@import") && !style.contains("url("));
}

/// Text that would be read as something else in each of the languages.
const HOSTILE: &str = "</title><script>alert(\"1\")</script> & &lt; ' \\ \\N \\\" `x` #quot; %%{init: {}}%%\nclick n_a;]--> \u{1b}\u{0}";

fn hostile() -> Graph {
    let mut graph = graph(EDGE);
    HOSTILE.clone_into(&mut graph.title);
    graph.description = Some(HOSTILE.to_owned());
    for node in &mut graph.nodes {
        node.image = Some(HOSTILE.to_owned());
    }
    graph.nodes[0].image = Some("<script>\"\\".to_owned());
    graph
}

#[test]
fn free_text_stays_text_in_a_picture() {
    let svg = hostile().to_svg();
    let names: BTreeSet<String> = elements(&svg).into_iter().map(|element| element.name).collect();
    let known = ["defs", "desc", "g", "marker", "path", "rect", "style", "svg", "text", "title"];
    assert_eq!(names, known.map(str::to_owned).into());
    assert!(svg.contains("&lt;script&gt;&quot;\\<"));
    assert!(!svg.contains(|c: char| c.is_control() && c != '\n'));
}

#[test]
fn free_text_stays_inside_its_quotes_for_graphviz() {
    let dot = hostile().to_dot();
    assert!(dot.contains("image <script>\\\"\\\\\\nmode"), "{dot}");
    assert_eq!(dot.lines().count(), graph(EDGE).to_dot().lines().count());
    for line in dot.lines() {
        let unescaped = line.replace("\\\\", "").replace("\\\"", "");
        assert_eq!(unescaped.matches('"').count() % 2, 0, "{line}");
    }
    assert!(!dot.contains("&lt;"), "an entity would be read as a character");
}

#[test]
fn free_text_stays_inside_its_quotes_for_mermaid() {
    let mermaid = hostile().to_mermaid();
    assert!(mermaid.contains("image #60;script#62;#34;#92;<br/>mode"), "{mermaid}");
    assert_eq!(mermaid.lines().count(), graph(EDGE).to_mermaid().lines().count());
    for word in ["<script", "%%", "`", "\\N", "#quot;", "&"] {
        assert!(!mermaid.contains(word), "{word} in {mermaid}");
    }
    for line in mermaid.lines().filter(|line| line.contains('[')) {
        assert_eq!(line.matches('"').count(), 2, "{line}");
    }
}

#[test]
fn names_that_are_words_of_mermaid_are_none_in_the_drawing() {
    let mermaid = graph(
        "
nodes:
  - { name: end, type: vm, image: x }
  - { name: graph, type: vm, image: x, depends_on: [end] }
",
    );
    assert!(mermaid.to_mermaid().contains("  n_end -.-> n_graph\n"));
}

#[test]
fn ten_thousand_nodes_are_drawn_in_bounded_size() {
    let mut text = String::from(
        "\nnodes:\n  - { name: hub, type: vm, image: x }\n  - { name: n0x, type: vm, image: x }\n",
    );
    for n in 1..10_000 {
        let before = n / 2;
        writeln!(text, "  - {{ name: n{n}x, type: vm, image: x, depends_on: [hub, n{before}x] }}").unwrap();
    }
    let svg = graph(&text).to_svg();
    assert!(svg.len() < 30_000_000, "{} bytes", svg.len());
    assert_eq!(svg.matches("class=\"node ").count(), 10_001);
}

/// One start tag.
struct Element {
    name: String,
    attributes: String,
}

impl Element {
    fn classes(&self) -> impl Iterator<Item = &str> {
        let class = self.attributes.split("class=\"").nth(1).and_then(|rest| rest.split('"').next());
        class.unwrap_or_default().split(' ')
    }
}

/// Reads XML as strictly as is needed here: tags are closed in order, attributes are quoted and named once, and text
/// holds nothing but text and known entities.
fn elements(xml: &str) -> Vec<Element> {
    let mut found = Vec::new();
    let mut open = Vec::new();
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        let is_style = open.last().is_some_and(|name| name == "style");
        check_text(&rest[..start], is_style);
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "tags are closed in order");
            continue;
        }
        let is_empty = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphabetic()), "`{name}` is no tag");
        check_attributes(attributes);
        found.push(Element { name: name.to_owned(), attributes: attributes.to_owned() });
        if !is_empty {
            open.push(name.to_owned());
        }
    }
    check_text(rest, false);
    assert!(open.is_empty(), "{open:?} are not closed");
    found
}

fn check_text(text: &str, is_style: bool) {
    assert!(!text.contains('>') || is_style, "{text}");
    for entity in text.split('&').skip(1) {
        let known = ["lt;", "gt;", "amp;", "quot;", "#39;"];
        assert!(known.iter().any(|known| entity.starts_with(known)), "&{entity}");
    }
}

fn check_attributes(attributes: &str) {
    let mut names = BTreeSet::new();
    let mut rest = attributes.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").expect("an attribute is a name and a quoted value");
        let (value, after) = after.split_once('"').expect("a value ends");
        assert!(name.chars().all(|c| c.is_ascii_alphabetic() || c == '-'), "`{name}` is no attribute");
        assert!(names.insert(name), "`{name}` is given twice");
        assert!(!value.contains('<'), "{value}");
        rest = after.trim_start();
    }
}
