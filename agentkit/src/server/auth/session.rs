//! The inbox's cookie: a credential that scripts cannot read and other sites cannot use.
//!
//! Signing in puts the presented token into a cookie (`HttpOnly`, `SameSite=Strict`, `Secure`
//! except on loopback). A request with the cookie and no `Authorization` header is treated as if
//! the token stood there, provided that the browser says it comes from this very site.

use std::fmt::Write as _;

use axum::http::{HeaderValue, Method, header, request::Parts};

use super::development::host_is_loopback;

const NAME: &str = "agentkit_session";

/// Moves the cookie's token into the `Authorization` header, where there is none. Whether it did.
pub(in crate::server) fn adopt_cookie(request: &mut Parts) -> bool {
    if request.headers.contains_key(header::AUTHORIZATION) || !is_same_site(request) {
        return false;
    }
    let Some(token) = token_in_cookie(request) else {
        return false;
    };
    let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {token}")) else {
        return false;
    };
    value.set_sensitive(true);
    request.headers.insert(header::AUTHORIZATION, value);
    true
}

fn token_in_cookie(request: &Parts) -> Option<String> {
    let cookies = request.headers.get_all(header::COOKIE).iter();
    let token = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('='))?;
    decode(token)
}

/// Whether the browser says that the request comes from a page of this site. Reading may also
/// come from the address bar.
fn is_same_site(request: &Parts) -> bool {
    let text = |name: &str| request.headers.get(name).map(HeaderValue::as_bytes);
    let reads = request.method == Method::GET || request.method == Method::HEAD;
    match text("sec-fetch-site") {
        Some(b"same-origin") => true,
        Some(b"none") => reads,
        Some(_) => false,
        // A browser without fetch metadata still sends the origin of everything but reads.
        None => {
            let host = text("host").unwrap_or_default();
            match text("origin") {
                Some(origin) => {
                    let origin = origin
                        .strip_prefix(b"https://")
                        .or_else(|| origin.strip_prefix(b"http://"));
                    origin == Some(host)
                }
                None => reads,
            }
        }
    }
}

/// The cookie that signs in with `token`, or out without one.
pub(in crate::server) fn cookie(token: Option<&str>, request: &Parts) -> Option<HeaderValue> {
    let secure = if host_is_loopback(request) {
        ""
    } else {
        "; Secure"
    };
    let text = match token {
        Some(token) => format!(
            "{NAME}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200{secure}",
            encode(token)
        ),
        None => format!("{NAME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0{secure}"),
    };
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Percent-encodes what a cookie's value cannot hold.
fn encode(token: &str) -> String {
    let mut text = String::with_capacity(token.len());
    for byte in token.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing into a text does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]
    use axum::http::Request;

    use super::*;

    fn request(method: Method, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri("/v1/me");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn tokens_survive_the_cookie() {
        for token in ["abc", "a b;c\"%=é", "eyJh.bG-_~+/="] {
            assert_eq!(decode(&encode(token)).as_deref(), Some(token));
        }
        assert_eq!(decode("%4"), None);
        assert_eq!(decode("%ff"), None);
    }

    #[test]
    fn another_site_cannot_use_the_cookie() {
        let cookie = ("cookie", "x=1; agentkit_session=abc");
        let adopted = |method: Method, headers: &[(&str, &str)]| {
            let headers: Vec<_> = headers.iter().copied().chain([cookie]).collect();
            adopt_cookie(&mut request(method, &headers))
        };
        assert!(adopted(Method::POST, &[("sec-fetch-site", "same-origin")]));
        assert!(adopted(Method::GET, &[("sec-fetch-site", "none")]));
        assert!(adopted(
            Method::POST,
            &[("host", "a:1"), ("origin", "http://a:1")]
        ));
        for headers in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none")],
            &[("host", "a"), ("origin", "http://b")],
            &[("host", "a"), ("origin", "null")],
            &[("host", "a")],
        ] {
            assert!(!adopted(Method::POST, headers), "{headers:?}");
        }
        assert!(!adopted(Method::GET, &[("sec-fetch-site", "cross-site")]));
    }

    #[test]
    fn a_header_is_never_overridden() {
        let mut request = request(
            Method::GET,
            &[
                ("authorization", "Bearer x"),
                ("cookie", "agentkit_session=abc"),
            ],
        );
        assert!(!adopt_cookie(&mut request));
        assert_eq!(request.headers.get("authorization").unwrap(), "Bearer x");
    }
}
