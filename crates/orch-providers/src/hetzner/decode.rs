//! From the text of an answer to what it says. What is new in it is passed over; what is missing in it is named.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

use super::trouble::{CallError, short};

/// An answer as a value; what is missing in it is named.
pub(super) fn decode<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, CallError> {
    serde_json::from_slice(body).map_err(|error| CallError::Odd(format!("{what}: {}", lacking(&error))))
}

/// What a list in an answer holds. One thing that cannot be read is not passed over: whoever does not see it would make it
/// again.
pub(super) fn list_of<T: DeserializeOwned>(
    what: &str,
    key: &str,
    answer: &Json,
) -> Result<Vec<T>, CallError> {
    let listed = answer.get(key).and_then(Json::as_array);
    let listed = listed.ok_or_else(|| CallError::Odd(format!("{what}: an answer without `{key}`")))?;
    let kind = key.strip_suffix('s').unwrap_or(key).replace('_', " ");
    let each = listed.iter().map(|item| {
        T::deserialize(item).map_err(|error| {
            let id = item.get("id").map_or_else(|| "without an id".to_owned(), Json::to_string);
            CallError::Odd(format!("{what}: {kind} {} {}", short(&id), lacking(&error)))
        })
    });
    each.collect()
}

/// What an answer lacks. Values are not told: nobody knows what is in them.
fn lacking(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.strip_prefix("missing field ") {
        Some(rest) => format!("without {}", rest.split(" at ").next().unwrap_or(rest)),
        None if error.is_data() => "with something else than it should have".into(),
        None => "an answer that is no JSON".into(),
    }
}

/// Nothing is as good as what is not there.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::answer::{Begun, Failure, Server};
    use super::*;

    fn server(id: u64) -> Json {
        json!({
            "id": id, "name": "web-1", "status": "hibernating", "labels": { "a": "b" }, "novelty": { "x": [1] },
            "server_type": { "name": "cx23", "cores": 2, "memory": 4.0, "disk": 40, "architecture": "riscv" },
            "public_net": { "ipv4": { "ip": "192.0.2.7", "blocked": false }, "ipv6": null },
            "private_net": null, "protection": { "delete": true, "rebuild": false }, "placement_group": null,
        })
    }

    #[test]
    fn what_is_new_in_an_answer_keeps_nothing_from_being_read() {
        let answer = json!({ "servers": [server(1), server(2)] });
        let servers: Vec<Server> = list_of("GET /servers", "servers", &answer).unwrap();
        assert_eq!(servers[0].status, "hibernating");
        assert_eq!(servers[1].public_net.ipv4.as_ref().unwrap().ip, "192.0.2.7");
        assert!(servers[0].protection.delete && servers[0].private_net.is_empty());
    }

    #[test]
    fn what_is_missing_in_an_answer_is_named() {
        let mut lacking = server(17);
        lacking.as_object_mut().unwrap().remove("server_type");
        let answer = json!({ "servers": [server(1), lacking] });
        let error = list_of::<Server>("GET /servers", "servers", &answer).unwrap_err();
        assert_eq!(error.to_string(), "GET /servers: server 17 without `server_type`");
        let error = decode::<Begun>("POST /servers/1/actions/poweron", b"{}").unwrap_err();
        assert_eq!(error.to_string(), "POST /servers/1/actions/poweron: without `action`");
        assert!(list_of::<Server>("GET /servers", "servers", &json!({})).is_err());
    }

    #[test]
    fn a_no_is_read_whatever_shape_it_has() {
        let read = |body: &str| Failure::read(body.as_bytes());
        let failure = read(r#"{"error":{"code":"locked","message":"it is","details":{}}}"#);
        assert_eq!((failure.code.as_str(), failure.message.as_str()), ("locked", "it is"));
        for odd in ["", "<html>", "[]", r#"{"error":"x"}"#, r#"{"error":{"code":null}}"#] {
            assert_eq!(read(odd).code, "", "{odd}");
        }
    }
}
