//! The inbox: a page of this server, whole in the binary, without a line from elsewhere.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use serde::Deserialize;

use super::{
    Problem,
    auth::session::cookie,
    extract::{Json, authenticate},
    state::Server,
};

struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

macro_rules! assets {
    ($($name:literal as $kind:literal),* $(,)?) => {
        const ASSETS: &[Asset] = &[$(Asset {
            name: $name,
            kind: $kind,
            text: include_str!(concat!("inbox/", $name)),
        }),*];
    };
}

const HTML: &str = "text/html; charset=utf-8";

assets! {
    "index.html" as "text/html; charset=utf-8",
    "style.css" as "text/css; charset=utf-8",
    "icon.svg" as "image/svg+xml",
    "app.js" as "text/javascript; charset=utf-8",
    "api.js" as "text/javascript; charset=utf-8",
    "decide.js" as "text/javascript; charset=utf-8",
    "detail.js" as "text/javascript; charset=utf-8",
    "dom.js" as "text/javascript; charset=utf-8",
    "form.js" as "text/javascript; charset=utf-8",
    "json.js" as "text/javascript; charset=utf-8",
    "list.js" as "text/javascript; charset=utf-8",
    "text.js" as "text/javascript; charset=utf-8",
}

/// Scripts and styles from here only, no inline ones, and no way to turn text into markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

pub(super) fn routes() -> Vec<(String, MethodRouter<Server>)> {
    let mut routes = vec![
        ("/inbox".to_owned(), get(to_the_page)),
        ("/inbox/".to_owned(), get(|| async { serve("index.html") })),
        (
            "/inbox/session".to_owned(),
            post(sign_in).delete(sign_out).get(offers),
        ),
    ];
    for asset in ASSETS.iter().filter(|asset| asset.kind != HTML) {
        let name = asset.name;
        routes.push((
            format!("/inbox/{name}"),
            get(move || async move { serve(name) }),
        ));
    }
    routes
}

/// Relative, so that it holds wherever the router is nested.
async fn to_the_page() -> Response {
    (
        StatusCode::PERMANENT_REDIRECT,
        [(header::LOCATION, "inbox/")],
    )
        .into_response()
}

fn serve(name: &str) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return Problem::unknown("page").into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, asset.text).into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    token: String,
}

/// What the sign-in page shows.
async fn offers(State(server): State<Server>) -> Response {
    axum::Json(serde_json::json!({
        "warning": server.authenticator.warning(),
        "offers": server.authenticator.offers(),
    }))
    .into_response()
}

/// Checks a token and puts it into the cookie.
async fn sign_in(State(server): State<Server>, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    // A page of another site must not sign anybody in.
    if let Some(site) = parts.headers.get("sec-fetch-site")
        && site != "same-origin"
    {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "other-site",
            "sign in from the inbox's own page",
        ));
    }
    let request = Request::from_parts(parts.clone(), body);
    let Json(SignIn { token }) =
        <Json<SignIn> as axum::extract::FromRequest<Server>>::from_request(request, &server)
            .await?;
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
        .map_err(|_| Problem::malformed("`token` holds characters that none has"))?;
    value.set_sensitive(true);
    parts.headers.remove(header::COOKIE);
    parts.headers.insert(header::AUTHORIZATION, value);
    authenticate(&parts, &server).await?;
    with_cookie(Some(token.trim()), &parts)
}

async fn sign_out(request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    with_cookie(None, &parts)
}

fn with_cookie(
    token: Option<&str>,
    parts: &axum::http::request::Parts,
) -> Result<Response, Problem> {
    let cookie = cookie(token, parts).ok_or_else(|| Problem::malformed("no cookie holds it"))?;
    let mut headers = HeaderMap::new();
    headers.insert(header::SET_COOKIE, cookie);
    Ok((StatusCode::NO_CONTENT, headers).into_response())
}
