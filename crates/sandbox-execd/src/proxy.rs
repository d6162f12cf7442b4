//! `/proxy/PORT/...`: requests that go on to a port of the sandbox.
//!
//! The server hands out `/proxy/44772` as the way to the daemon itself. In the default profile
//! such a request is simply one without that prefix. In the stock profile it takes the way the
//! real one sends it: over a connection that is kept open for ten minutes though nobody will use
//! it again, and with some runs lost.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::command;
use crate::daemon::Daemon;
use crate::respond::{Body, plain_error};
use crate::router::TOKEN_HEADER;
use crate::stream::Feeder;

/// How long to wait for a port of this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the stock profile keeps what it no longer needs.
const LEAK: Duration = Duration::from_mins(10);

/// Where a request goes.
pub(crate) enum Target {
    /// To the daemon, with the path it is for.
    Here(Request<Incoming>),
    /// To a port.
    Elsewhere(Request<Incoming>, u16),
    Nowhere(Response<Body>),
}

/// The port and the rest of a path below `/proxy/`.
fn split(path: &str) -> Option<(&str, String)> {
    let rest = path.strip_prefix("/proxy/")?;
    let (port, rest) = rest.split_once('/').unwrap_or((rest, ""));
    Some((port, format!("/{rest}")))
}

/// Decides where a request goes.
pub(crate) fn target(daemon: &Daemon, mut request: Request<Incoming>) -> Target {
    let own = daemon.options.port;
    loop {
        let Some((port, path)) = split(request.uri().path()) else {
            return Target::Here(request);
        };
        if port.is_empty() {
            return Target::Nowhere(plain_error(StatusCode::BAD_REQUEST, "port is required"));
        }
        let Ok(port) = port.parse::<u16>() else {
            return Target::Nowhere(bad_gateway());
        };
        let target = match request.uri().query() {
            Some(query) => format!("{path}?{query}"),
            None => path,
        };
        let Ok(uri) = target.parse::<Uri>() else {
            return Target::Nowhere(plain_error(StatusCode::BAD_REQUEST, "bad path"));
        };
        *request.uri_mut() = uri;
        if port != own || daemon.options.profile.is_stock() {
            return Target::Elsewhere(request, port);
        }
    }
}

fn bad_gateway() -> Response<Body> {
    plain_error(StatusCode::BAD_GATEWAY, "Bad Gateway")
}

/// Sends a request on, and its answer back.
pub(crate) async fn forward(
    daemon: &Arc<Daemon>,
    request: Request<Incoming>,
    port: u16,
    peer: Option<SocketAddr>,
) -> Response<Body> {
    let own = port == daemon.options.port;
    let run = request.method() == Method::POST && request.uri().path() == "/command";
    if own && run && daemon.loses_this_run() {
        return command::lost_run().await;
    }
    match exchange(request, port, own, peer).await {
        Ok(response) if own => break_as_the_real_one(response).await,
        Ok(response) => response,
        Err(_) => bad_gateway(),
    }
}

async fn exchange(
    mut request: Request<Incoming>,
    port: u16,
    own: bool,
    peer: Option<SocketAddr>,
) -> io::Result<Response<Body>> {
    let connect = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, connect).await??;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(connection.with_upgrades());

    let upgrade = request.headers().get(UPGRADE).cloned();
    clean(request.headers_mut(), upgrade.as_ref());
    let headers = request.headers_mut();
    if !own {
        // The token is for the daemon, not for what listens in the sandbox.
        headers.remove(TOKEN_HEADER);
    }
    if !headers.contains_key(HOST)
        && let Ok(host) = HeaderValue::from_str(&format!("127.0.0.1:{port}"))
    {
        headers.insert(HOST, host);
    }
    if !headers.contains_key("X-Forwarded-For")
        && let Some(peer) = peer
        && let Ok(peer) = HeaderValue::from_str(&peer.ip().to_string())
    {
        headers.insert("X-Forwarded-For", peer);
    }
    headers.insert("X-Forwarded-Proto", HeaderValue::from_static("http"));
    headers.remove("X-Forwarded-Host");

    let client_side = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    let mut response = sender
        .send_request(request)
        .await
        .map_err(io::Error::other)?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let server_side = hyper::upgrade::on(&mut response);
        if let Some(client_side) = client_side {
            tokio::spawn(async move {
                if let (Ok(client), Ok(server)) = (client_side.await, server_side.await) {
                    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    } else {
        clean(response.headers_mut(), None);
    }
    if own {
        tokio::spawn(async move {
            tokio::time::sleep(LEAK).await;
            drop(sender);
        });
    }
    Ok(response.map(|body| body.map_err(io::Error::other).boxed_unsync()))
}

/// Removes what concerns one connection only. An upgrade is asked for anew.
fn clean(headers: &mut HeaderMap, upgrade: Option<&HeaderValue>) {
    const HOP: [&str; 8] = [
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','))
        .filter_map(|it| it.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    headers.remove(CONNECTION);
    for name in HOP {
        headers.remove(name);
    }
    if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, upgrade.clone());
    }
}

/// An answer that breaks before its body begins is a 500 by the time it comes out of the real
/// daemon's proxy, with the same headers and still no body.
async fn break_as_the_real_one(response: Response<Body>) -> Response<Body> {
    let (mut parts, mut body) = response.into_parts();
    if parts.status == StatusCode::SWITCHING_PROTOCOLS || hyper::body::Body::is_end_stream(&body) {
        return Response::from_parts(parts, body);
    }
    let first = body.frame().await;
    let broken = matches!(first, Some(Err(_)));
    if broken {
        parts.status = StatusCode::INTERNAL_SERVER_ERROR;
    }
    let (feeder, out) = Feeder::open(1);
    tokio::spawn(async move {
        let mut next = first;
        loop {
            match next {
                None => return,
                Some(Ok(frame)) => {
                    let data: Bytes = frame.into_data().unwrap_or_default();
                    if !feeder.send(data).await {
                        return;
                    }
                }
                Some(Err(error)) => return feeder.fail(error).await,
            }
            next = body.frame().await;
        }
    });
    Response::from_parts(parts, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_at_the_port() {
        assert_eq!(split("/proxy/44772/ping"), Some(("44772", "/ping".into())));
        assert_eq!(split("/proxy/80"), Some(("80", "/".into())));
        assert_eq!(split("/proxy/80/"), Some(("80", "/".into())));
        assert_eq!(split("/proxy/abc//x"), Some(("abc", "//x".into())));
        assert_eq!(split("/proxy/"), Some(("", "/".into())));
        assert_eq!(split("/proxy"), None);
    }

    #[test]
    fn headers_of_one_connection_stay_on_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("te", "trailers"),
            ("accept", "*/*"),
        ] {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        clean(&mut headers, None);
        assert_eq!(headers.len(), 1);
        clean(&mut headers, Some(&HeaderValue::from_static("websocket")));
        assert_eq!(headers[CONNECTION], "Upgrade");
        assert_eq!(headers[UPGRADE], "websocket");
    }
}
