use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use agentkit::server::{Algorithm, Oidc, OidcBuilder, OidcError, Server};
use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use jsonwebtoken::{EncodingKey, Header, jwk::Jwk};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::{
    client::{Person, database, http},
    house::{self, Ledger},
};

const AUDIENCE: &str = "approvals";

/// A key of a provider.
#[derive(Clone)]
struct Key {
    id: &'static str,
    secret: EncodingKey,
    public: Value,
}

impl Key {
    fn new(id: &'static str) -> Self {
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let secret = EncodingKey::from_ec_der(made.unwrap().as_ref());
        let jwk = Jwk::from_encoding_key(&secret, Algorithm::ES256).unwrap();
        let mut public = serde_json::to_value(jwk).unwrap();
        public["kid"] = json!(id);
        Self { id, secret, public }
    }

    fn sign(&self, claims: &Value) -> String {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(self.id.to_owned());
        jsonwebtoken::encode(&header, claims, &self.secret).unwrap()
    }
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(now.unwrap().as_secs()).unwrap()
}

fn claims(issuer: &str) -> Value {
    json!({
        "iss": issuer, "aud": AUDIENCE, "sub": "fiona", "exp": now() + 300,
        "realm": { "roles": ["finance"] },
    })
}

fn builder(issuer: &str) -> OidcBuilder {
    Oidc::builder(issuer, AUDIENCE)
        .algorithms([Algorithm::ES256])
        .roles_claim("realm.roles")
}

/// A server that asks `oidc` who somebody is; gives what a token amounts to.
async fn server(oidc: Oidc) -> impl AsyncFn(&str) -> (StatusCode, Value) {
    let desk = house::desk(&database(), Ledger::default()).await;
    let router = Server::builder(oidc).agent(&desk).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(agentkit::server::serve(
        listener,
        router,
        std::future::pending(),
    ));
    let http = http();
    async move |token: &str| {
        let person = Person {
            base: base.clone(),
            token: Some(token.to_owned()),
            http: http.clone(),
        };
        person.get("/v1/me").await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_keys_out_of_a_file() {
    let (key, other) = (Key::new("k1"), Key::new("k1"));
    let issuer = "https://id.example";
    let jwks = json!({ "keys": [key.public] }).to_string();
    let me = server(builder(issuer).keys(&jwks).unwrap()).await;
    let (status, fiona) = me(&key.sign(&claims(issuer))).await;
    assert_eq!(status, StatusCode::OK, "{fiona}");
    assert_eq!(fiona["id"], "fiona");
    assert_eq!(fiona["roles"], json!(["finance"]));
    assert_eq!(fiona["authenticated_by"], "oidc");

    let with = |name: &str, value: Value| {
        let mut claims = claims(issuer);
        claims[name] = value;
        key.sign(&claims)
    };
    let good = key.sign(&claims(issuer));
    let (head, rest) = good.split_once('.').unwrap();
    let (body, signature) = rest.split_once('.').unwrap();
    let unsigned_head = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0";
    for (why, token) in [
        ("expired", with("exp", json!(now() - 120))),
        ("without an end", with("exp", Value::Null)),
        ("not yet valid", with("nbf", json!(now() + 120))),
        (
            "of another issuer",
            with("iss", json!("https://evil.example")),
        ),
        ("for another audience", with("aud", json!("something"))),
        ("of nobody", with("sub", json!(""))),
        ("by a key of the same id", other.sign(&claims(issuer))),
        ("by an unknown key", Key::new("k2").sign(&claims(issuer))),
        ("with another body", format!("{head}.{body}x.{signature}")),
        ("unsigned", format!("{unsigned_head}.{body}.")),
        ("with the signature cut off", format!("{head}.{body}.")),
        ("by a shared secret", {
            let mut header = Header::new(Algorithm::HS256);
            header.kid = Some("k1".to_owned());
            let secret = EncodingKey::from_secret(key.public.to_string().as_bytes()).unwrap();
            jsonwebtoken::encode(&header, &claims(issuer), &secret).unwrap()
        }),
    ] {
        let (status, problem) = me(&token).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "a token {why}: {problem}");
        // What is wrong is for the log.
        let detail = problem["detail"].as_str().unwrap();
        assert!(!detail.contains("signature") && !detail.contains("audience"));
    }
}

/// What a provider publishes, on a listener of its own.
async fn provider(keys: Arc<Mutex<Vec<Value>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let at = issuer.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).await.unwrap();
            let text = if head[..read].starts_with(b"GET /.well-known/") {
                json!({ "issuer": at, "jwks_uri": format!("{at}/keys") }).to_string()
            } else {
                json!({ "keys": *keys.lock().unwrap() }).to_string()
            };
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                text.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    issuer
}

#[tokio::test(flavor = "multi_thread")]
async fn with_keys_that_the_provider_changes() {
    let (old, new) = (Key::new("k1"), Key::new("k2"));
    let keys = Arc::new(Mutex::new(vec![old.public.clone()]));
    let issuer = provider(Arc::clone(&keys)).await;
    let oidc = builder(&issuer)
        .allow_http_on_loopback()
        .pause(Duration::from_millis(1))
        .discover()
        .await
        .unwrap();
    let me = server(oidc).await;
    assert_eq!(me(&old.sign(&claims(&issuer))).await.0, StatusCode::OK);
    assert_eq!(
        me(&new.sign(&claims(&issuer))).await.0,
        StatusCode::UNAUTHORIZED
    );
    *keys.lock().unwrap() = vec![new.public.clone()];
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(me(&new.sign(&claims(&issuer))).await.0, StatusCode::OK);
    assert_eq!(
        me(&old.sign(&claims(&issuer))).await.0,
        StatusCode::UNAUTHORIZED,
        "it is not published any more"
    );
}

#[tokio::test]
async fn and_no_unsafe_provider_is_used() {
    let refused = builder("http://id.example").discover().await;
    assert!(matches!(refused, Err(OidcError::Insecure { .. })));
    let symmetric = builder("https://id.example").algorithms([Algorithm::HS256]);
    assert!(matches!(
        symmetric.keys("{\"keys\":[]}"),
        Err(OidcError::Algorithm(Algorithm::HS256))
    ));
    for text in ["", "{}", "{\"keys\":[]}", "{\"keys\":7}"] {
        let refused = builder("https://id.example").keys(text);
        assert!(matches!(refused, Err(OidcError::Keys(_))), "{text}");
    }
}
