//! A lab in this process: its hosts behind the wire, with machines that exist on paper alone.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use orch_lab::{
    Answer, Api, ApiParts, Asked, Fault, HostKind, Lab, LabFile, LabSettings, Power, Rule, Size, Trouble,
    Wanted,
};
use orch_model::HostName;
use serde_json::json;

use crate::client::Client;

/// Makes a machine of every `POST`, for those who have the token.
struct Small {
    parts: ApiParts,
}

#[async_trait]
impl Api for Small {
    async fn answer(&self, asked: Asked) -> Answer {
        if asked.header("authorization") != Some(self.parts.token.expose()) {
            return Answer::empty(401);
        }
        let id = asked.segments().join("-");
        let size = Size { cores: 1, memory: 512, disk: 1 };
        let wanted = Wanted { id, name: "a".into(), size, image: String::new(), is_container: false };
        self.parts.machines.make(&wanted).await.unwrap();
        Answer::json(201, &json!({ "node": self.parts.node }))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "others that make APIs can fail")]
fn make(parts: ApiParts) -> Result<Arc<dyn Api>, Trouble> {
    Ok(Arc::new(Small { parts }))
}

fn settings(folder: &std::path::Path) -> LabSettings {
    let mut settings = LabSettings { paper: true, ..LabSettings::new(folder.into(), "orch".into()) };
    for host in &mut settings.hosts {
        host.port = 0;
    }
    settings
}

fn at(file: &LabFile, host: &str) -> SocketAddr {
    file.hosts[host].endpoint.strip_prefix("https://").unwrap().parse().unwrap()
}

#[tokio::test]
async fn each_host_is_its_own_with_an_address_a_certificate_a_token_faults_and_calls() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder.path().join("lab"));
    let lab = Lab::begin(&settings, &make).await.unwrap();
    let file = lab.file().clone();
    assert_eq!((file.hosts["pve"].kind, file.hosts["cloud"].kind), (HostKind::Proxmox, HostKind::Hetzner));
    assert_eq!((file.hosts["pve"].node.as_deref(), file.hosts["cloud"].node.as_deref()), (Some("pve"), None));
    let (pve, cloud) = (at(&file, "pve"), at(&file, "cloud"));
    assert!(pve.ip().is_loopback() && cloud.ip().is_loopback() && pve.ip() != cloud.ip());
    let ask = async |host: &str, token: &str| {
        let mut client = Client::connect(at(&file, host)).await;
        assert_eq!(client.fingerprint(), file.hosts[host].fingerprint);
        client.ask(&format!("POST /machines/7 HTTP/1.1\r\nauthorization: {token}"), b"").await
    };
    let token = |host: &str| file.hosts[host].token.expose().to_owned();
    assert!(ask("pve", &token("cloud")).await.line.starts_with("HTTP/1.1 401"));
    let heard = ask("pve", &token("pve")).await;
    assert!(heard.line.starts_with("HTTP/1.1 201") && heard.body == r#"{"node":"pve"}"#, "{heard:?}");
    let (pve, cloud): (HostName, HostName) = ("pve".parse().unwrap(), "cloud".parse().unwrap());
    lab.faults(&cloud).unwrap().add(Rule::once(Fault::ServerError));
    assert!(ask("cloud", &token("cloud")).await.line.starts_with("HTTP/1.1 500"));
    assert_eq!((lab.calls(&pve).unwrap().count(), lab.calls(&cloud).unwrap().count()), (2, 1));
    assert_eq!(lab.machines(&pve).unwrap().power("machines-7").await, Power::Off);
    assert!(
        lab.machines(&pve).unwrap().resize("machines-7", Size { cores: 2, memory: 1, disk: 1 }).await.is_ok()
    );
    lab.end().await;
    let again = Lab::begin(&settings, &make).await.unwrap();
    assert_eq!(again.file(), &file, "what others know of it stays so");
    again.end().await;
}
